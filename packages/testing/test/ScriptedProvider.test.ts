import { assert, describe, it } from "@effect/vitest"
import * as ScriptedProvider from "@recourse/testing/ScriptedProvider"
import { connect } from "node:net"

const ask = (url: string, body: object = {}) =>
  fetch(`${url}/v1/messages`, { method: "POST", body: JSON.stringify(body) })

describe("ScriptedProvider", () => {
  it("does to each request what its script says, keeps it, and answers well after the last step", async () => {
    const provider = await ScriptedProvider.start()
    provider.play(
      ScriptedProvider.answer(418, { headers: { "Content-Type": "text/plain", "X-Own": "1" }, body: "tea" })
    )
    const tea = await ask(provider.url, { model: "m" })
    assert.deepStrictEqual(
      [tea.status, tea.headers.get("content-type"), tea.headers.get("x-own"), await tea.text()],
      [418, "text/plain", "1", "tea"]
    )
    const good = await ask(provider.url, { model: "m" })
    assert.strictEqual((await good.json()).content[0].text, "Here is the answer.")
    assert.deepStrictEqual(provider.requests().map(({ body, method, path }) => [method, path, body]), [
      ["POST", "/v1/messages", "{\"model\":\"m\"}"],
      ["POST", "/v1/messages", "{\"model\":\"m\"}"]
    ])
    provider.play()
    assert.deepStrictEqual(provider.requests(), [])
    await provider.close()
  })

  it("an answer without a body can be cut", async () => {
    const provider = await ScriptedProvider.start()
    provider.play(ScriptedProvider.cut(ScriptedProvider.empty))
    const response = await ask(provider.url)
    let broken: unknown
    await response.text().catch((error: unknown) => {
      broken = error
    })
    assert.instanceOf(broken, TypeError)
    await provider.close()
  })

  it("is away and back on the same port, and closes on connections that are shaking hands", async () => {
    const provider = await ScriptedProvider.start({ protocol: "https" })
    const { port } = new URL(provider.url)
    const socket = connect(Number(port), "127.0.0.1")
    await new Promise((resolve) => socket.once("connect", resolve))
    const closed = new Promise((resolve) => socket.once("close", resolve))
    await provider.down()
    await closed
    await provider.up()
    await provider.up()
    assert.strictEqual(new URL(provider.url).port, port)
    await provider.close()
  })
})
