// Both ways of loading the package return the same objects, which share their state, such as the drivers of one kernel.
const { equal } = require('node:assert/strict');
const { pathToFileURL } = require('node:url');

const names = (module) => Object.keys(module).filter((name) => !['default', 'module.exports'].includes(name));

module.exports = async (first, second) => {
  const { name, exports } = require('networkdirect/package.json');
  for (const path of Object.keys(exports).filter((one) => !one.endsWith('.json'))) {
    const entry = path.replace('.', name);
    const [one, other] = [await first(entry), await second(entry)];
    equal(names(one).sort().join(), names(other).sort().join());
    for (const key of names(one)) equal(one[key], other[key], `${entry} ${key}`);
  }
  const { loadDriver } = await first('networkdirect/kernel-bridge');
  const { openDeviceFile } = await second('networkdirect/kernel-bridge');
  loadDriver(pathToFileURL(require.resolve('./driver.cjs'))).getResult({ wait: true });
  openDeviceFile('\\\\.\\Box').close();
  return 'one instance';
};
