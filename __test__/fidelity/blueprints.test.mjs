// Blueprints: built, used by id and by name, their logs, their end.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BadRequestError } from "@runloop/api-client";
import { suite, unique } from "./support/suite.mjs";

suite("blueprints", (c) => {
  async function built(t, params = {}) {
    const blueprint = await c.sdk.blueprint.create({ name: unique("blueprint"), ...params });
    t.after(() => blueprint.delete());
    return blueprint;
  }

  test("[SDK12] a blueprint is built from its name alone", async (t) => {
    const name = unique("named");
    const view = await c.api.blueprints.createAndAwaitBuildCompleted({ name });
    t.after(() => c.api.blueprints.delete(view.id));
    assert.equal(view.status, "build_complete");
    assert.equal(view.name, name);
    assert.equal(view.parameters.name, name);
  });

  test("[SDK13] a Devbox by blueprint id names the blueprint", async (t) => {
    const { id } = await built(t);
    const devbox = await c.api.devboxes.createAndAwaitRunning({ blueprint_id: id });
    t.after(() => c.api.devboxes.shutdown(devbox.id));
    assert.equal(devbox.blueprint_id, id);
  });

  test("[SDK14] a Devbox by blueprint name names the newest blueprint of that name", async (t) => {
    const name = unique("twice");
    await built(t, { name });
    const newest = await built(t, { name });
    const devbox = await c.api.devboxes.createAndAwaitRunning({ blueprint_name: name });
    t.after(() => c.api.devboxes.shutdown(devbox.id));
    assert.equal(devbox.blueprint_id, newest.id);
  });

  test("[SDK15] the secrets of a build are echoed by name", async (t) => {
    const secret = await c.sdk.secret.create({ name: "BUILD_TOKEN", value: "hidden" });
    t.after(() => secret.delete());
    const blueprint = await built(t, { secrets: { GITHUB_TOKEN: "BUILD_TOKEN" } });
    const { parameters } = await blueprint.getInfo();
    assert.deepEqual(parameters.secrets, { GITHUB_TOKEN: "BUILD_TOKEN" });
  });

  test("[SDK28] the objects make Devboxes by blueprint id and by name", async (t) => {
    const name = unique("both");
    const blueprint = await built(t, { name });
    const byId = await c.sdk.devbox.createFromBlueprintId(blueprint.id, { name: "by id" });
    t.after(() => byId.shutdown());
    const byName = await c.sdk.devbox.createFromBlueprintName(name, { name: "by name" });
    t.after(() => byName.shutdown());
    for (const box of [byId, byName]) {
      const info = await box.getInfo();
      assert.equal(info.status, "running");
      assert.equal(info.blueprint_id, blueprint.id);
    }
  });

  test("[SDK59] a build has logs", async (t) => {
    const blueprint = await built(t, { system_setup_commands: ["echo building"] });
    const { logs, blueprint_id } = await blueprint.logs();
    assert.equal(blueprint_id, blueprint.id);
    assert.ok(logs.length > 0);
  });

  test("[SDK59] a blueprint makes a Devbox in which its setup has run", async (t) => {
    const blueprint = await built(t, {
      system_setup_commands: ['echo prepared > "$HOME/prepared.txt"'],
    });
    const box = await blueprint.createDevbox({ name: "prepared" });
    t.after(() => box.shutdown());
    assert.equal((await box.getInfo()).blueprint_id, blueprint.id);
    assert.equal(await box.file.read({ file_path: "prepared.txt" }), "prepared\n");
  });

  test("[SDK59] a blueprint is deleted once and deleting it again is no error", async (t) => {
    const blueprint = await built(t);
    assert.notEqual(await blueprint.delete(), undefined);
    assert.equal((await blueprint.getInfo()).state, "deleted");
    await blueprint.delete();
  });

  test("[SDK59] a policy of the build and one for its Devboxes are kept apart", async (t) => {
    const [build, launch] = await Promise.all(
      ["build", "launch"].map((name) => c.sdk.networkPolicy.create({ name: unique(name) })),
    );
    t.after(() => Promise.all([build.delete(), launch.delete()]));
    const blueprint = await built(t, {
      network_policy_id: build.id,
      launch_parameters: { network_policy_id: launch.id },
    });
    const { parameters } = await blueprint.getInfo();
    assert.equal(parameters.network_policy_id, build.id);
    const box = await blueprint.createDevbox();
    const info = await box.getInfo();
    await box.shutdown();
    assert.equal(info.launch_parameters.network_policy_id, launch.id);
  });

  test("an unknown blueprint id is a bad request and makes no Devbox", async () => {
    const name = unique("never");
    await assert.rejects(
      c.api.devboxes.create({ name, blueprint_id: "bp_nonexistent" }),
      BadRequestError,
    );
    const { devboxes } = await c.api.devboxes.list({ limit: 100 });
    assert.ok(!devboxes.some((devbox) => devbox.name === name));
  });

  test("blueprints are listed by name, page by page", async (t) => {
    const name = unique("listed");
    const made = [await built(t, { name }), await built(t, { name }), await built(t, { name })];
    const walked = [];
    for await (const view of c.api.blueprints.list({ name, limit: 2 })) walked.push(view);
    assert.deepEqual(
      walked
        .filter((view) => view.name === name)
        .map((view) => view.id)
        .sort(),
      made.map(({ id }) => id).sort(),
    );
  });
});
