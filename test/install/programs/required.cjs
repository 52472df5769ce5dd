const byte = require('./byte.cjs');

byte(require('networkdirect/net')).then(console.log);
