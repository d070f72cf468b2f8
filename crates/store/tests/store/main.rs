//! The history from outside: what comes back, what is refused, and what survives.

#![cfg(test)]

mod common;
mod history;
mod transfer;
mod writers;
