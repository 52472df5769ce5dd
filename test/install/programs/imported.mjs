import * as net from 'networkdirect/net';
import byte from './byte.cjs';

byte(net).then(console.log);
