//! The program as instructions (`linux/bpf.h`, Documentation/bpf/instruction-set).

use std::os::fd::RawFd;

use linerate_model::bench::{XdpAction, XdpSpec};
use linerate_sys::bpf::Instruction;

// Registers: r0 is a result, r1..r5 are arguments, r6..r9 survive calls, r10 is the frame pointer.
const DATA_END: u8 = 3;
const DATA: u8 = 2;
const CONTEXT: u8 = 6;
const LENGTH: u8 = 7;

const LOAD_U16: u8 = 0x69; // BPF_LDX | BPF_MEM | BPF_H
const LOAD_U32: u8 = 0x61; // BPF_LDX | BPF_MEM | BPF_W
const STORE_U16: u8 = 0x6b; // BPF_STX | BPF_MEM | BPF_H
const STORE_IMMEDIATE_U32: u8 = 0x62; // BPF_ST | BPF_MEM | BPF_W
const ATOMIC_U64: u8 = 0xdb; // BPF_STX | BPF_ATOMIC | BPF_DW
const LOAD_IMMEDIATE_64: u8 = 0x18; // BPF_LD | BPF_IMM | BPF_DW, two instructions
const MOVE: u8 = 0xbf; // BPF_ALU64 | BPF_MOV | BPF_X
const MOVE_IMMEDIATE: u8 = 0xb7; // BPF_ALU64 | BPF_MOV | BPF_K
const ADD_IMMEDIATE: u8 = 0x07; // BPF_ALU64 | BPF_ADD | BPF_K
const SUBTRACT: u8 = 0x1f; // BPF_ALU64 | BPF_SUB | BPF_X
const JUMP_IF_EQUAL: u8 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_IF_NOT_GREATER: u8 = 0xbd; // BPF_JMP | BPF_JLE | BPF_X
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// Source register of an immediate that is a map's descriptor.
const PSEUDO_MAP_FD: u8 = 1;

const HELPER_MAP_LOOKUP: i32 = 1;
const HELPER_ADJUST_HEAD: i32 = 44;
const HELPER_REDIRECT_MAP: i32 = 51;
const HELPER_ADJUST_TAIL: i32 = 65;

const XDP_ABORTED: i32 = 0;
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
const XDP_TX: i32 = 3;

/// Instructions of the program that `spec` tells.
pub(super) fn assemble(spec: &XdpSpec, counts: RawFd, devices: Option<RawFd>) -> Vec<Instruction> {
    let mut code = vec![op(MOVE, CONTEXT, 1, 0, 0)];
    count(&mut code, counts);
    adjust(&mut code, HELPER_ADJUST_HEAD, spec.head_bytes);
    adjust(&mut code, HELPER_ADJUST_TAIL, spec.tail_bytes);
    match (&spec.action, devices) {
        (XdpAction::Drop, _) => leave(&mut code, XDP_DROP),
        (XdpAction::Pass, _) => leave(&mut code, XDP_PASS),
        (XdpAction::Transmit, _) => {
            swap_addresses(&mut code);
            leave(&mut code, XDP_TX);
        }
        (XdpAction::Redirect(_), Some(devices)) => redirect(&mut code, devices),
        (XdpAction::Aborted, _) | (XdpAction::Redirect(_), None) => leave(&mut code, XDP_ABORTED),
    }
    code
}

/// Adds one frame, and its length, to entry 0 of the map.
fn count(code: &mut Vec<Instruction>, counts: RawFd) {
    load_ends(code);
    code.extend([op(MOVE, LENGTH, DATA_END, 0, 0), op(SUBTRACT, LENGTH, DATA, 0, 0)]);
    code.push(op(STORE_IMMEDIATE_U32, 10, 0, -4, 0));
    code.extend([op(MOVE, 2, 10, 0, 0), op(ADD_IMMEDIATE, 2, 0, 0, -4)]);
    load_map(code, counts);
    code.push(op(CALL, 0, 0, 0, HELPER_MAP_LOOKUP));
    code.extend([
        op(JUMP_IF_EQUAL, 0, 0, 3, 0),
        op(MOVE_IMMEDIATE, 1, 0, 0, 1),
        op(ATOMIC_U64, 0, 1, 0, 0),
        op(ATOMIC_U64, 0, LENGTH, 8, 0),
    ]);
}

/// Moves an end of the frame; a frame too short for it is aborted.
fn adjust(code: &mut Vec<Instruction>, helper: i32, bytes: i32) {
    if bytes == 0 {
        return;
    }
    code.extend([
        op(MOVE, 1, CONTEXT, 0, 0),
        op(MOVE_IMMEDIATE, 2, 0, 0, bytes),
        op(CALL, 0, 0, 0, helper),
        op(JUMP_IF_EQUAL, 0, 0, 2, 0),
    ]);
    leave(code, XDP_ABORTED);
}

/// Swaps destination and source address; a frame too short for both is aborted.
fn swap_addresses(code: &mut Vec<Instruction>) {
    load_ends(code);
    code.extend([op(MOVE, 1, DATA, 0, 0), op(ADD_IMMEDIATE, 1, 0, 0, 14)]);
    code.push(op(JUMP_IF_NOT_GREATER, 1, DATA_END, 2, 0));
    leave(code, XDP_ABORTED);
    for word in [0, 2, 4] {
        code.extend([
            op(LOAD_U16, 4, DATA, word, 0),
            op(LOAD_U16, 5, DATA, word + 6, 0),
            op(STORE_U16, DATA, 5, word, 0),
            op(STORE_U16, DATA, 4, word + 6, 0),
        ]);
    }
}

/// Redirects by entry 0 of the map; where there is none the frame is aborted (flags 0).
fn redirect(code: &mut Vec<Instruction>, devices: RawFd) {
    load_map(code, devices);
    code.extend([
        op(MOVE_IMMEDIATE, 2, 0, 0, 0),
        op(MOVE_IMMEDIATE, 3, 0, 0, XDP_ABORTED),
        op(CALL, 0, 0, 0, HELPER_REDIRECT_MAP),
        op(EXIT, 0, 0, 0, 0),
    ]);
}

/// `data` and `data_end` of the context (`struct xdp_md`), for r2 and r3.
fn load_ends(code: &mut Vec<Instruction>) {
    code.extend([op(LOAD_U32, DATA, CONTEXT, 0, 0), op(LOAD_U32, DATA_END, CONTEXT, 4, 0)]);
}

/// A map as first argument.
fn load_map(code: &mut Vec<Instruction>, map: RawFd) {
    code.extend([op(LOAD_IMMEDIATE_64, 1, PSEUDO_MAP_FD, 0, map), Instruction::default()]);
}

fn leave(code: &mut Vec<Instruction>, action: i32) {
    code.extend([op(MOVE_IMMEDIATE, 0, 0, 0, action), op(EXIT, 0, 0, 0, 0)]);
}

fn op(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, registers: destination | (source << 4), offset, immediate }
}
