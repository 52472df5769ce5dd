/** Warns of memory whose object was collected without release. The region is not released here: peers may be using it. */
export const unreleased = new FinalizationRegistry<string>((what) => {
  process.emitWarning(`${what} was not released: call release(), or use \`using\`.`, 'NetworkDirectWarning');
});
