/** Warns of memory whose object was garbage-collected without release. The region is not released here because peers may be using it. */
export const unreleased = new FinalizationRegistry<string>((what) => {
  process.emitWarning(`${what} was not released. Call release() or use \`using\`.`, 'NetworkDirectWarning');
});
