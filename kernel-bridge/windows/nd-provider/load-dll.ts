import { Status, StatusError } from '../../ioctl/status.js';
import { wantSteady } from '../allocate.js';
import { libraryLoader, loadLibrary } from '../library-loader.js';
import { nativeBytes } from '../steady-memory.js';
import { type NdProviderEntry, refusalOf } from './catalogue.js';
import { ComObject, comFailure, iidAddress, pointerAt } from './com-object.js';
import { prepareRequests } from './overlapped-requests.js';
import { guidBytes } from './slots.js';

/** Providers of this thread by path. A provider stays loaded until its thread ends. */
const loaded = new Map<string, ComObject<'IND2Provider'>>();

/**
 * Loads the provider of a catalogue entry. From then on, `allocate()` of this thread returns memory that providers can
 * register.
 *
 * @throws StatusError NOT_SUPPORTED if the path is not absolute, or the DLL cannot be loaded or is not a provider;
 *   otherwise the provider's result
 */
export function loadProvider({ path, library, id }: NdProviderEntry): ComObject<'IND2Provider'> {
  const refused = refusalOf(path);
  if (refused !== undefined) throw new StatusError(Status.NOT_SUPPORTED, refused);
  prepareRequests();
  const key = path.toLowerCase();
  let provider = loaded.get(key);
  if (provider === undefined) {
    provider = new ComObject('IND2Provider', entryOf(path, library, id), library);
    loaded.set(key, provider);
  }
  wantSteady();
  return provider;
}

/** Returns the provider's object, directly or through the DLL's class factory. */
function entryOf(path: string, library: string, id: string): number {
  const module = loadLibrary(path);
  const { find, functionAt } = libraryLoader();
  const entry = find(module, 'DllGetClassObject');
  if (entry === 0) {
    const text = `${path} is not a NetworkDirect provider: it does not export DllGetClassObject.`;
    throw new StatusError(Status.NOT_SUPPORTED, text);
  }
  const getClassObject = functionAt(BigInt(entry), 'uint32_t', ['uintptr_t', 'uintptr_t', 'uintptr_t']);
  const memory = nativeBytes().memory(24);
  memory.bytes.set(guidBytes(id));
  const out = memory.address + 16;
  const get = (iid: number): number => {
    memory.words.fill(0, 4);
    const result = Number(getClassObject(memory.address, iid, out)) >>> 0;
    return result === Status.SUCCESS && pointerAt(memory.words, 4) === 0 ? Status.INTERNAL_ERROR : result;
  };
  if (get(iidAddress('IND2Provider')) === Status.SUCCESS) return pointerAt(memory.words, 4);
  const result = get(iidAddress('IClassFactory'));
  if (result !== Status.SUCCESS) throw comFailure(library, 'DllGetClassObject', result);
  const factory = new ComObject('IClassFactory', pointerAt(memory.words, 4), library);
  try {
    memory.words.fill(0, 4);
    factory.run('CreateInstance', 0, iidAddress('IND2Provider'), out);
    return pointerAt(memory.words, 4);
  } finally {
    factory.release();
  }
}
