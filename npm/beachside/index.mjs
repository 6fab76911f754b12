export * from "../../client/index.mjs";
