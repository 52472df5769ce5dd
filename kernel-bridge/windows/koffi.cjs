// The package for Windows has this beside the addon: koffi is a dependency of that package alone, and found from there.
module.exports = require('koffi');
