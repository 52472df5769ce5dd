#!/usr/bin/env node
/** The `nd` command. It loads only the command that its arguments name, because loading all of them takes longer than most of them run. */
import { Command } from 'commander';
import { endsInTwo, packageVersion } from './command-line.js';
import { EXIT_STATUS, handleInterrupts } from './interrupts.js';

type Fail = (error: unknown) => void;

/** The commands, in the order of `nd --help`. `fail` prints an error. */
const commands: Readonly<Record<string, (fail: Fail) => Promise<Command>>> = {
  demo: async (fail) => (await import('./demo-command.js')).demoCommand(fail),
  build: async (fail) => (await import('./build.js')).buildCommand(fail),
  'verbs-info': async (fail) => (await import('./verbs-info.js')).verbsInfoCommand(fail),
  stat: async (fail) => (await import('./stat/stat.js')).statCommand(fail),
  top: async (fail) => (await import('./stat/top.js')).topCommand(fail),
  conformance: async (fail) => (await import('./conformance.js')).conformanceCommand(fail),
  nvme: async (fail) => (await import('./nvme/nvme-command-line.js')).nvmeCommand(fail),
  adapterinfo: async () => (await import('./tools/adapterinfo.js')).adapterinfoCommand,
  cat: async () => (await import('./tools/cat.js')).catCommand,
  ping: async () => (await import('./tools/ping.js')).pingCommand,
  pingpong: async () => (await import('./tools/pingpong.js')).pingpongCommand,
  rping: async () => (await import('./tools/rping.js')).rpingCommand,
  rpingpong: async () => (await import('./tools/rpingpong.js')).rpingpongCommand,
  mrlat: async () => (await import('./tools/mrlat.js')).mrlatCommand,
  mrrate: async () => (await import('./tools/mrrate.js')).mrrateCommand,
  conn: async () => (await import('./tools/conn.js')).connCommand,
  completion: async () => (await import('./shell-completion.js')).completionCommand(),
};

/** The commands to load for a command line: usually one; none for the version; all for help, completion and unknown names. */
function namesFor([first = '', second = '']: readonly string[]): readonly string[] {
  const name = first === 'help' ? second : first;
  if (Object.hasOwn(commands, name) && name !== 'completion') return [name];
  return first === '-V' || first === '--version' ? [] : Object.keys(commands);
}

/** Appended to the help, but not to the usage after an error. */
const exitStatus = ({ error }: { error: boolean }): string => (error ? '' : EXIT_STATUS);

async function main(): Promise<void> {
  handleInterrupts();
  // Errors are then printed with stack traces. Reading the source maps is a tenth of the startup time.
  if (process.env.ND_DEBUG !== undefined) process.setSourceMapsEnabled(true);
  const program = endsInTwo(new Command('nd'))
    .description('NetworkDirect for Node.js')
    .version(packageVersion())
    .showHelpAfterError();
  const names = namesFor(process.argv.slice(2));
  if (names.length > 0) {
    const { fail } = await import('./peer-lost.js');
    const loaded = await Promise.all(names.map((name) => commands[name]!(fail)));
    for (const command of loaded) {
      program.addCommand(command.copyInheritedSettings(program));
      for (const one of [command, ...command.commands]) one.addHelpText('after', exitStatus);
    }
    program.addHelpText('after', exitStatus);
  }
  await program.parseAsync();
}

// A reader such as `head` may close the output early, which is not an error; a full disk is one. Tools with their own listener end
// themselves.
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (process.stdout.listenerCount('error') > 1) return;
  if (code !== 'EPIPE') process.stderr.write(`nd: cannot write the output: ${message}\n`);
  process.exit(code === 'EPIPE' ? 0 : 1);
});

// The promise is not awaited, because the package is CommonJS. A rejection ends the process.
void main();
