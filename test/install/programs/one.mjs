import { createRequire } from 'node:module';
import one from './one.cjs';

const ways = [(name) => import(name), createRequire(import.meta.url)];
if (process.argv[2] === 'require') ways.reverse();
console.log(await one(...ways));
