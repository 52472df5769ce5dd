import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { encodeMessage, ipCmHeader, parseMad } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { captureFiles, expectedIcrc, icrcField, madOf, readCapture } from '../helpers/pcap.js';

const addon = loadAddon();

const packets = captureFiles().flatMap(readCapture);

test('the ICRC of every captured packet equals the computed ICRC', () => {
  assert.is(packets.length, 1081);
  for (const { file, number, ip } of packets) assert.is(icrcField(ip), expectedIcrc(ip), `${file}#${number}`);
});

test('the HCA computes the same ICRC for every captured packet', () => {
  for (const { file, number, ip } of packets) assert.is(addon.icrcOf(ip), icrcField(ip), `${file}#${number}`);
});

test('every captured CM message parses, and encodes to the same bytes', () => {
  const seen: Record<string, number> = {};
  for (const packet of packets) {
    const mad = madOf(packet);
    if (!mad) continue;
    const message = parseMad(mad);
    if (typeof message === 'string') throw new Error(`${packet.file}#${packet.number}: ${message}`);
    seen[message.name] = (seen[message.name] ?? 0) + 1;
    assert.equal(encodeMessage(message), mad, `${packet.file}#${packet.number}`);
  }
  assert.equal(seen, { REQ: 14, REP: 11, RTU: 10, REJ: 4, DREQ: 10, DREP: 10, SIDR_REQ: 2, SIDR_REP: 2 });
});

test('the GIDs and address headers of captured REQs are those of their packets', () => {
  for (const packet of packets) {
    const mad = madOf(packet);
    const message = mad && parseMad(mad);
    if (!message || typeof message === 'string' || message.name !== 'REQ') continue;
    const where = `${packet.file}#${packet.number}`;
    assert.equal(message.body.primaryLocalGid, packet.source, where);
    assert.equal(message.body.primaryRemoteGid, packet.destination, where);
    const header = ipCmHeader.decode(message.body.privateData);
    assert.is(header.ipVersion, packet.ip[0]! >> 4, where);
    assert.equal(header.sourceAddress.slice(12), packet.source.slice(12), where);
    assert.equal(header.destinationAddress.slice(12), packet.destination.slice(12), where);
  }
});

test.run();
