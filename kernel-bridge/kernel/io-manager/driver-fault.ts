/** A driver broke a rule of the I/O manager. No caller's input can cause it. */
export class DriverFault extends Error {
  /** `DriverFault`. */
  override readonly name = 'DriverFault';
}
