/** A file of tests of this package on a device: `tests ADDRESS FILE`. Both sides of each connection are at the address. */
const [address, file] = process.argv.slice(2);
process.env.ND_TEST_ADDRESS = address;
await import(`../../integration/${file}.test.js`);
