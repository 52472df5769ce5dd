import { Status } from '../../winverbs/index.js';
import { type NdError, refuse } from '../status.js';

/** Which processor completions interrupt is not for this provider to say. */
export function noAffinity(): NdError {
  return refuse(
    Status.NOT_SUPPORTED,
    'GetNotifyAffinity',
    'This adapter does not know which processors completions interrupt.',
  );
}
