/** An npm registry on this host. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

interface Packed {
  readonly file: string;
  readonly bytes: Buffer;
  readonly manifest: { readonly name: string; readonly version: string };
}

/** The tarballs of a folder, with the manifests that they contain. */
function tarballs(folder: string): Packed[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  return files.map((file) => {
    const path = join(folder, file);
    const manifest = execFileSync('tar', ['-xOzf', path, 'package/package.json'], { encoding: 'utf8' });
    return { file, bytes: readFileSync(path), manifest: JSON.parse(manifest) as Packed['manifest'] };
  });
}

/** The npm registry configured on this machine. */
function upstream(): string {
  const url = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim();
  return url.replace(/\/$/, '');
}

/** The publication date of packages, because package managers skip versions that are only a few days old. */
const PUBLISHED = '2026-01-01T00:00:00.000Z';

/** A registry's metadata of a package that has one version. */
function packument({ file, bytes, manifest }: Packed, base: string): object {
  const { name, version } = manifest;
  const digest = (algorithm: string, encoding: 'base64' | 'hex') =>
    createHash(algorithm).update(bytes).digest(encoding);
  const dist = {
    tarball: `${base}/${name}/-/${file}`,
    integrity: `sha512-${digest('sha512', 'base64')}`,
    shasum: digest('sha1', 'hex'),
  };
  return {
    ...{ name, 'dist-tags': { latest: version }, time: { [version]: PUBLISHED } },
    versions: { [version]: { ...manifest, dist } },
  };
}

/** A registry that serves the packed packages of a folder, and redirects to this machine's registry for all others. */
export async function startRegistry(folder: string): Promise<{ readonly url: string; close(): void }> {
  const packed = tarballs(folder);
  const other = upstream();
  const reply = ({ url = '', headers }: IncomingMessage, response: ServerResponse): void => {
    const path = decodeURIComponent(url.slice(1));
    const own = packed.find(({ manifest, file }) => path === manifest.name || path.endsWith(`/-/${file}`));
    if (own === undefined) response.writeHead(302, { location: other + url }).end();
    else if (path !== own.manifest.name) response.end(own.bytes);
    else {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(packument(own, `http://${headers.host}`)));
    }
  };
  const server = createServer(reply);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close };
}
