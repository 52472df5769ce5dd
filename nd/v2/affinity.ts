import { Status } from '../../winverbs/index.js';
import { type NdError, refuse } from '../status.js';

/** This provider does not control the processors that completions interrupt. */
export function noAffinity(): NdError {
  return refuse(
    Status.NOT_SUPPORTED,
    'GetNotifyAffinity',
    'This adapter does not know which processors completions interrupt.',
  );
}
