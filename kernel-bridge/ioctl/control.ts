/** The control device of the soft kernel: its names, and one table of the IOCTLs of its four parts. */
import {
  type CountersCode,
  countersTable,
  type DriversCode,
  driversTable,
  type FaultsCode,
  faultsTable,
  type SettingsCode,
  settingsTable,
} from './codes.js';

/** The control device; only the soft kernel has it. The names below open it as well, and each accepts every code. */
export const CONTROL_DEVICE = '\\\\.\\NetworkDirectControl';
/** The device file of the counters; only the soft kernel has it. */
export const COUNTERS_DEVICE = '\\\\.\\NetworkDirectCounters';
/** The device file that loads drivers; only the soft kernel has it. */
export const DRIVERS_DEVICE = '\\\\.\\NetworkDirectDrivers';
/** The device file for simulated device faults; only the soft kernel has it. */
export const FAULTS_DEVICE = '\\\\.\\NetworkDirectFaults';
/** The device file of settings that can change while the kernel runs; only the soft kernel has it. */
export const SETTINGS_DEVICE = '\\\\.\\NetworkDirectSettings';

/** All names of the control device. */
export const controlNames: readonly string[] = [
  CONTROL_DEVICE,
  COUNTERS_DEVICE,
  DRIVERS_DEVICE,
  FAULTS_DEVICE,
  SETTINGS_DEVICE,
];

/** The name of an IOCTL of the control device. */
export type ControlName =
  | keyof typeof CountersCode
  | keyof typeof DriversCode
  | keyof typeof FaultsCode
  | keyof typeof SettingsCode;

/** All rows of the control device. */
export const controlTable = [...countersTable, ...faultsTable, ...driversTable, ...settingsTable];
