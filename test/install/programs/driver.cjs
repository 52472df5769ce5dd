const { Status } = require('networkdirect/kernel');

if (Status.SUCCESS !== 0) throw new Error('no statuses');
exports.driverEntry = (driver) => void driver.createDevice('\\Device\\Box', ['\\DosDevices\\Box']);
