"use strict";

module.exports = require("../../client/dist/index.js");
