//! Tests of the room as a whole: the grammar against a plain reading of the
//! standard, and the bookkeeping against a model of the service.

mod grammar;
mod model;
mod resuming;
mod transcript;
