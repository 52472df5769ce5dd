const { openNetworkDirect } = require('networkdirect');

try {
  openNetworkDirect().openAdapter('192.0.2.1');
} catch (error) {
  console.log(error.stack);
}
