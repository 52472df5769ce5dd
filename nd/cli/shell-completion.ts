/** `nd completion`: shell completion of `nd` for bash, zsh and fish. The scripts are generated from the commands. */
import { Argument, Command, type Option } from 'commander';

/** The names under which the command is installed. */
const PROGRAMS = ['nd', 'networkdirect'] as const;

/** A command for completion. */
interface Words {
  /** The command as typed, without the program: `nvme read`. */
  readonly path: string;
  readonly options: readonly Option[];
  readonly subcommands: readonly Command[];
  /** The permitted arguments, if they are listed. */
  readonly choices: readonly string[];
}

/** The program and all its subcommands. */
function* wordsOf(command: Command, path: readonly string[] = []): Generator<Words> {
  const help = command.createHelp();
  const [options, subcommands] = [help.visibleOptions(command), help.visibleCommands(command)];
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  yield { path: path.join(' '), options, subcommands, choices };
  for (const one of command.commands) yield* wordsOf(one, [...path, one.name()]);
}

/** The options whose value is a file name. */
const FILES: ReadonlySet<string> = new Set(['--file', '--logFile', '--input', '--output', '--provider']);

const takesValue = ({ required, optional }: Option): boolean => required || optional;
const flagsOf = ({ short, long }: Option): string[] => [short, long].filter((flag) => flag != null);
const takesFile = (option: Option): boolean => takesValue(option) && FILES.has(option.long ?? '');

/** Text in single quotes, for bash and zsh. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function bash(all: readonly Words[]): string {
  const cases = all.map(({ path, options, subcommands, choices }) => {
    const words = [...subcommands.map((one) => one.name()), ...choices, ...options.flatMap(flagsOf)].join(
      ' ',
    );
    const valued = options.filter((one) => takesValue(one) && !takesFile(one)).flatMap(flagsOf);
    const files = options.filter(takesFile).flatMap(flagsOf);
    return [
      `    ${quoted(path)})`,
      `      words=${quoted(words)}`,
      `      valued=${quoted(valued.join(' '))}`,
      `      files=${quoted(files.join(' '))}`,
      `      subcommands=${quoted(subcommands.map((one) => one.name()).join(' '))} ;;`,
    ].join('\n');
  });
  return `# bash completion of nd: source <(nd completion bash)
_nd_words() {
  case "$1" in
${cases.join('\n')}
    *) words= valued= files= subcommands= ;;
  esac
}
_nd() {
  local words valued files subcommands path= word i current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  _nd_words ''
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    if [[ " $subcommands " == *" $word "* ]]; then
      path="\${path:+$path }$word"
      _nd_words "$path"
    fi
  done
  COMPREPLY=()
  if [[ " $files " == *" $previous "* ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  elif [[ " $valued " != *" $previous "* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}
complete -F _nd ${PROGRAMS.join(' ')}
`;
}

/** Text in the square brackets of an option's description, for zsh. */
const bracketed = (text: string): string => text.replace(/[[\]:\\]/g, '\\$&');

function zsh(all: readonly Words[]): string {
  const name = (path: string): string => `_nd${path === '' ? '' : `_${path.replace(/\W/g, '_')}`}`;
  const functions = all.map(({ path, options, subcommands, choices }) => {
    const specs = options.flatMap((option) =>
      flagsOf(option).map((flag) => {
        const value = takesValue(option) ? `:value:${takesFile(option) ? '_files' : ' '}` : '';
        return quoted(`${flag}[${bracketed(option.description)}]${value}`);
      }),
    );
    if (choices.length > 0) specs.push(quoted(`1:value:(${choices.join(' ')})`));
    if (subcommands.length === 0) return `${name(path)}() {\n  _arguments ${['-s', ...specs].join(' ')}\n}`;
    const described = subcommands.map((one) => quoted(`${one.name()}:${one.description()}`)).join(' ');
    const chosen = subcommands
      .filter((one) => all.some((words) => words.path === `${path} ${one.name()}`.trim()))
      .map((one) => `${one.name()}) ${name(`${path} ${one.name()}`.trim())} ;;`);
    return `${name(path)}() {
  local -a commands=(${described})
  local state
  _arguments -C ${[...specs, `'1: :->command'`, `'*:: :->rest'`].join(' ')}
  case $state in
    command) _describe command commands ;;
    rest) case $words[1] in ${chosen.join(' ')} esac ;;
  esac
}`;
  });
  return `#compdef ${PROGRAMS.join(' ')}
# zsh completion of nd: source <(nd completion zsh), after compinit
${functions.join('\n')}
compdef _nd ${PROGRAMS.join(' ')}
`;
}

/** Text in single quotes, for fish. */
const fishQuoted = (text: string): string => `'${text.replace(/['\\]/g, '\\$&')}'`;

function fish(all: readonly Words[]): string {
  const lines = all.flatMap(({ path, options, subcommands, choices }) => {
    const where = (exact: string): string => `-n ${fishQuoted(`__nd_at${exact === '' ? '' : ` ${exact}`}`)}`;
    return [
      ...subcommands.map((one) => `${where(path)} -a ${one.name()} -d ${fishQuoted(one.description())}`),
      ...(choices.length > 0 ? [`${where(path)} -a ${fishQuoted(choices.join(' '))}`] : []),
      ...options.map((option) => {
        const { short, long } = option;
        const flags = [short && `-s ${short.slice(1)}`, long && `-l ${long.slice(2)}`].filter(Boolean);
        const value = takesValue(option) ? (takesFile(option) ? ' -r -F' : ' -x') : '';
        return `${where(path)} ${flags.join(' ')}${value} -d ${fishQuoted(option.description)}`;
      }),
    ];
  });
  const paths = all.map(({ path }) => fishQuoted(path)).join(' ');
  return `# fish completion of nd: nd completion fish | source
function __nd_at
  set -l path
  for word in (commandline -opc)[2..]
    contains -- (string trim "$path $word") ${paths}; and set path (string trim "$path $word")
  end
  test "$path" = "$argv"
end
${PROGRAMS.flatMap((program) => [`complete -c ${program} -f`, ...lines.map((line) => `complete -c ${program} ${line}`)]).join('\n')}
`;
}

const shells = { bash, zsh, fish } as const;

/** The command, which completes its parent program. */
export function completionCommand(): Command {
  return new Command('completion')
    .description('print a shell completion script')
    .addArgument(new Argument('<shell>').choices(Object.keys(shells)))
    .addHelpText(
      'after',
      '\nIn ~/.bashrc:  source <(nd completion bash)\nIn ~/.zshrc, after compinit: source <(nd completion zsh)\nIn config.fish: nd completion fish | source',
    )
    .action((shell: keyof typeof shells, _: unknown, command: Command) => {
      process.stdout.write(shells[shell]([...wordsOf(command.parent!)]));
    });
}
