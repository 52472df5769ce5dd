/**
 * Loads the block device, prints its port, and blocks its thread forever, while the kernel's thread serves the clients.
 *
 *   node dist/examples/block-device/server.js [address]
 */
import { loadDriver, openDeviceFile } from 'networkdirect/kernel-bridge';
import { DEVICE_FILE, QUERY, QUERY_BYTES } from './protocol.js';

const address = process.argv[2] ?? '127.0.0.1';
const parameters = { address, blocks: 1024, blockSize: 512 };
loadDriver(new URL('./driver.js', import.meta.url), { name: 'BlockDevice', parameters }).getResult({
  wait: true,
});
const file = openDeviceFile(DEVICE_FILE);
const [port = 0] = new Uint32Array(file.ioctl(QUERY, null, QUERY_BYTES).slice().buffer);
const line = `The block device listens on ${address}, port ${port}. This thread is blocked now.`;
if (process.send) process.send({ port }, () => block());
else {
  console.log(line);
  block();
}

function block(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
