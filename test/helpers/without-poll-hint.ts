/**
 * Importing this module removes the hint `shouldPoll` from the completion queues of this process, as if each device belonged to a provider
 * without it, such as a real HCA or another implementation.
 */
import { registerUserVerbs, SOFT_USER_LIBRARY, type UserVerbs } from '../../winverbs/index.js';

registerUserVerbs(
  SOFT_USER_LIBRARY,
  (previous) => Object.create(previous!(), { shouldPoll: { value: undefined } }) as UserVerbs,
);
