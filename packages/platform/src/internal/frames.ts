/** What stands at a path of parsed JSON, or nothing. */
export const at = (frame: unknown, ...path: ReadonlyArray<string | number>): unknown => {
  let value = frame
  for (const key of path) {
    if (typeof value !== "object" || value === null) return undefined
    value = Reflect.get(value, key)
  }
  return value
}

/** A text with something in it. */
export const said = (u: unknown): u is string => typeof u === "string" && u !== ""

export const listAt = (frame: unknown, ...path: ReadonlyArray<string | number>): ReadonlyArray<unknown> => {
  const list = at(frame, ...path)
  return Array.isArray(list) ? list : []
}

const count = (u: unknown): number | undefined => typeof u === "number" && u >= 0 ? u : undefined

/** Usage, under the names that a dialect has for its two counts. */
export const usageOf = (usage: unknown, input: string, output: string) =>
  typeof usage === "object" && usage !== null
    ? [{ _tag: "Usage", input: count(at(usage, input)), output: count(at(usage, output)) } as const]
    : []

/** What a piece of a tool call names, of what is known. */
export const namedBy = (id: unknown, name: unknown) => ({
  ...(said(id) ? { id } : {}),
  ...(said(name) ? { name } : {})
})

/** A position in a list of calls. */
export const indexOf = (u: unknown): number => typeof u === "number" ? u : 0
