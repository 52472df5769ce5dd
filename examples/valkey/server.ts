/**
 * Serves a few commands of Valkey over RDMA:
 *
 *   node dist/examples/valkey/server.js [address [port]]
 *
 * ND_OPTIONS='{"hca":"rdma"}' in the environment selects RDMA NICs only.
 */
import { ValkeyServer } from './valkey-server.js';

const [host, port] = process.argv.slice(2);
const server = new ValkeyServer({ host, port: port === undefined ? undefined : Number(port) });
console.log(`port ${server.port}`);
