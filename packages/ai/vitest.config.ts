import { defineProject } from "vitest/config"

export default defineProject({
  resolve: { conditions: ["@recourse/source"] },
  ssr: { resolve: { conditions: ["@recourse/source"] } },
  test: { name: "ai", include: ["test/**/*.test.ts"], testTimeout: 30_000 }
})
