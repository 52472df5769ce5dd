// Bundles a program into bundle.cjs: node webpack.cjs ENTRY [external]
const webpack = require('webpack');

const [entry, external] = process.argv.slice(2);
const options = {
  ...{ mode: 'production', target: 'node', entry },
  ...(external ? { externals: /^networkdirect/, externalsType: 'commonjs' } : {}),
  output: { path: __dirname, filename: 'bundle.cjs' },
};
webpack(options, (error, stats) => {
  if (error || stats.hasErrors()) throw error ?? new Error(stats.toString());
});
