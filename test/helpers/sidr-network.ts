/** Two hosts of the simulated network, one of which answers look-ups of a datagram service. */
import type {
  SidrInquiry,
  SidrListener,
  SidrLookup,
  SidrLookupParameters,
  SidrReply,
  SidrRequest,
} from '../../kernel-bridge/kernel/cm/service.js';
import type { CmOptions } from '../../kernel-bridge/options/option-schemas.js';
import { type Host, ipv4, Network } from './cm-network.js';

export const UDP_SERVICE = 0x0111_1c06n;
export const UDP_QKEY = 0x0123_4567;

/** One look-up: the name and data of its end. */
export class Question {
  readonly events: string[] = [];
  lookup!: SidrLookup;
  reply: SidrReply | undefined;
}

/** A request that the server has taken. */
export interface Asked {
  readonly inquiry: SidrInquiry;
  readonly request: SidrRequest;
  readonly events: string[];
}

/** A client that looks up and a server that listens. */
export class SidrPair {
  readonly network = new Network();
  readonly client: Host;
  readonly server: Host;
  readonly listener: SidrListener;
  /** Taken requests, oldest first. */
  readonly taken: Asked[] = [];
  /** Called by the server with each request it takes, if set. */
  onTaken: ((asked: Asked) => void) | undefined = ({ inquiry }) =>
    inquiry.accept(0x15, UDP_QKEY, new Uint8Array(0));
  /** Whether requests are taken when they arrive. */
  taking = true;

  constructor(options: Partial<CmOptions> = {}, backlog = 0) {
    this.client = this.network.add('client', ipv4(3), options);
    this.server = this.network.add('server', ipv4(2), options);
    this.listener = this.server.cm.listenForLookups({
      serviceId: UDP_SERVICE,
      address: undefined,
      backlog,
      onRequest: () => {
        if (this.taking) this.take();
      },
    });
  }

  take(): Asked | undefined {
    const found = this.listener.takeRequest();
    if (!found) return undefined;
    const asked: Asked = { ...found, events: [] };
    found.inquiry.events = { timedOut: () => asked.events.push('timedOut') };
    this.taken.push(asked);
    this.onTaken?.(asked);
    return asked;
  }

  ask(more: Partial<SidrLookupParameters> = {}): Question {
    const question = new Question();
    question.lookup = this.client.cm.lookup(
      {
        serviceId: UDP_SERVICE,
        path: {
          source: this.client.gid,
          destination: this.server.gid,
          flowLabel: 0,
          trafficClass: 0,
          hopLimit: 64,
          scopeId: 0,
        },
        localPort: 0xa290,
        pkey: 0xffff,
        privateData: new Uint8Array(0),
        ...more,
      },
      {
        answered: (reply) => {
          question.reply = reply;
          question.events.push(`answered ${reply.status}`);
        },
        timedOut: () => question.events.push('timedOut'),
      },
    );
    return question;
  }

  /** Leftover objects, in words; empty if there are none. */
  leftovers(): string[] {
    return this.network.hosts.flatMap((host) => {
      const { lookups, sidrWaiting, sidrAnswered } = host.cm.counters();
      return Object.entries({ timers: host.timers, ids: host.ids.size, lookups, sidrWaiting, sidrAnswered })
        .filter(([, count]) => count !== 0)
        .map(([what, count]) => `${host.name}: ${count} ${what}`);
    });
  }

  /** Runs to the end of all timers, and returns the leftovers. */
  end(): string[] {
    this.network.clock.runToEnd();
    return this.leftovers();
  }
}
