// Writes V8's code cache of the soft kernel's bundle, so that its thread need not compile it each time.
//
//   node scripts/cache-kernel.mjs [DIST]
//
// Runs when the bundle of a clone is made. A code cache fits one version of Node only, and is ignored by others. Does nothing if there is no bundle or no addon.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { BroadcastChannel } from 'node:worker_threads';

const dist = resolve(process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url)));
const bundle = join(dist, 'kernel-bridge/kernel/bundle.cjs');
const cache = bundle.replace(/cjs$/, 'cache');
/** How long the kernel may take to answer. */
const patienceMs = 10_000;

/** The code of the modules alone. Throws without an addon. */
function codeOfModules(source) {
  const script = new Script(Module.wrap(source), { filename: bundle });
  const made = { exports: {} };
  script.runInThisContext()(made.exports, createRequire(bundle), made, bundle, dirname(bundle));
  made.exports.addon();
  return script.createCachedData();
}

/** What programs do first: open a device and connect two queue pairs, here both of this process. */
async function connect(provider) {
  const { QpAttr, QpState } = await import(pathToFileURL(join(dist, 'winverbs/index.js')).href);
  const address = { family: 4, address: '127.0.0.1', port: 0 };
  const device = provider.openDevice(provider.translateAddress(address).deviceGuid);
  device.query();
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(16);
  const side = () => {
    const qp = pd.createConnectQueuePair({
      sendCq: cq,
      receiveCq: cq,
      context: 0,
      sendDepth: 4,
      sendSge: 1,
      receiveDepth: 4,
      receiveSge: 1,
      maxInlineSend: 16,
    });
    qp.modify({ qpState: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 }, QpAttr.STATE);
    return { qp, endpoint: provider.createConnectEndpoint() };
  };
  const [active, passive] = [side(), side()];
  const listener = provider.createConnectEndpoint();
  listener.bindAddress(address);
  listener.listen(0);
  const asked = listener.getRequest(passive.endpoint);
  active.endpoint.bindAddress(address);
  const peer = listener.query().localAddress;
  active.endpoint.resolveRoute(peer);
  const connected = active.endpoint.connect(active.qp, peer, {});
  await asked;
  passive.endpoint.query();
  const accepted = passive.endpoint.accept(passive.qp, {});
  await connected;
  active.endpoint.query();
  await active.endpoint.accept(null, {});
  await accepted;
  await Promise.all([active.endpoint.disconnect(), passive.endpoint.disconnect()]);
  for (const object of [active.endpoint, passive.endpoint, listener, active.qp, passive.qp, cq, pd, device])
    object.release();
}

/** The code of a kernel that a program has used. */
async function codeAfterUse() {
  const load = (path) => import(pathToFileURL(join(dist, path)).href);
  const { SoftKernel } = await load('kernel-bridge/door/soft/soft-kernel.js');
  const { resolveKernelOptions } = await load('kernel-bridge/door/soft/kernel-options.js');
  const { loadUserVerbs } = await load('kernel-bridge/uvp/index.js');
  const { WVProvider } = await load('winverbs/provider.js');
  process.env.NETWORKDIRECT_KERNEL_BUNDLE = bundle;
  const kernel = new SoftKernel(resolveKernelOptions({}), {
    entry: new URL('./record-kernel.cjs', import.meta.url),
  });
  const provider = new WVProvider({ openFile: (name) => kernel.open(name), loadUserVerbs });
  await connect(provider);
  provider.release();
  const recorder = new BroadcastChannel(bundle);
  const made = new Promise((done) => {
    recorder.onmessage = ({ data }) => done(data);
  });
  recorder.postMessage('the code, please');
  const late = new Promise((_, fail) =>
    setTimeout(() => fail(new Error('the kernel does not answer')), patienceMs).unref(),
  );
  return await Promise.race([made, late]).finally(() => recorder.close());
}

rmSync(cache, { force: true });
if (existsSync(bundle)) {
  const source = readFileSync(bundle, 'latin1');
  const mark = source.slice(0, source.indexOf('*/') + 2);
  const write = (code) => {
    writeFileSync(cache, Buffer.concat([Buffer.from(mark), code]));
    console.log(`${code.length} bytes kept of the kernel's code`);
  };
  try {
    write(codeOfModules(source));
    // Where the HCA cannot start, that is all.
    await codeAfterUse().then(write, () => {});
  } catch (error) {
    console.log(`Nothing kept of the kernel's code: ${error.message.split('\n')[0]}`);
  }
}
process.exit(0);
