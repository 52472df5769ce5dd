import { test } from 'uvu';
import { NdMwDescriptor, NdOpFlag, type NdResult } from '../../nd/index.js';
import { allocatesNothing, completing } from '../helpers/allocates.js';
import { endpointOf, openFake, registered, result } from '../helpers/nd-fixture.js';

test('posting requests and taking results allocate nothing', () => {
  const { adapter, pd } = openFake();
  const memory = registered(adapter, pd);
  const { endpoint, qp, inbound, outbound } = endpointOf(adapter, pd, { outbound: 8, inbound: 8 });
  const begin = completing(qp);
  const sgl = [{ memory, offset: 0, length: 1000 }];
  const small = [{ memory, offset: 8, length: 16 }];
  const remote = new NdMwDescriptor(0x7fff_1234_5678n, 4096n, 0xdead_beef);
  const shared = result();
  const results: NdResult[] = [shared];
  allocatesNothing(() => {
    begin();
    endpoint.receive(shared, sgl);
    endpoint.write(shared, sgl, remote, 64, NdOpFlag.SILENT_SUCCESS);
    endpoint.read(shared, sgl, remote, 64);
    endpoint.send(shared, small, NdOpFlag.READ_FENCE);
    if (outbound.getResults(results, 1) + outbound.getResults(results, 1) !== 2) throw new Error('lost');
    if (inbound.getResults(results, 1) !== 1) throw new Error('lost');
  });
});

test.run();
