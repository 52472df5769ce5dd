/** Code that is made of tables at run time: one place for how, and for what happens where that is not allowed. */

/**
 * Makes an object of functions.
 *
 * @param helpers - What the functions may call, by name
 * @param source - Statements that return the object, made of numbers and of names of this package's own tables
 * @returns Undefined where the process may not make code of strings (`--disallow-code-generation-from-strings`)
 */
export function madeCode<T>(helpers: Readonly<Record<string, unknown>>, source: string): T | undefined {
  try {
    return new Function('helpers', `const { ${Object.keys(helpers).join(', ')} } = helpers;\n${source}`)(
      helpers,
    );
  } catch (error) {
    if (error instanceof EvalError) return undefined;
    throw error;
  }
}
