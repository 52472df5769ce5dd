/**
 * Importing this takes the hint `shouldPoll` from the completion queues of this process, as if each device were one of a provider that
 * gives none: of a real HCA, or of somebody else's.
 */
import { registerUserVerbs, SOFT_USER_LIBRARY, type UserVerbs } from '../../winverbs/index.js';

registerUserVerbs(
  SOFT_USER_LIBRARY,
  (previous) => Object.create(previous!(), { shouldPoll: { value: undefined } }) as UserVerbs,
);
