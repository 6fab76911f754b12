//! The system calls that have no safe wrapper, each in a function that is safe to call
//! in a process without threads, and what a process must forget of its parents.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{ForkResult, Pid, fork};

/// Forks; in the child calls `work`, which never returns.
#[expect(unsafe_code, reason = "fork is unsafe in a process with threads")]
pub(super) fn fork_into(work: impl FnOnce() -> Infallible) -> nix::Result<Pid> {
    // SAFETY: helper processes have one thread, so no lock is held by another.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let work = std::panic::AssertUnwindSafe(work);
            // A panic must not unwind into the parent's part of the stack.
            let _ = std::panic::catch_unwind(work);
            exit(125)
        }
    }
}

/// Ends the process at once: exit handlers belong to the process it was forked from.
#[expect(unsafe_code, reason = "_exit is a C function")]
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor from 3 on but `kept`.
pub(super) fn close_all_but(kept: BorrowedFd<'_>) {
    let kept = kept.as_raw_fd();
    close_range(3, kept - 1);
    close_range(kept + 1, RawFd::MAX);
}

#[expect(unsafe_code, reason = "closes descriptors that Rust values may own")]
fn close_range(first: RawFd, last: RawFd) {
    if first <= last {
        // SAFETY: called right after a fork or an exec; the values that own these
        // descriptors belong to the parent's part of the program, which this process
        // never returns to.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// Owns a descriptor that the kernel has just made.
#[expect(
    unsafe_code,
    reason = "some calls give a new descriptor as a bare number"
)]
pub(super) fn adopt(fresh: RawFd) -> OwnedFd {
    // SAFETY: every caller passes the result of the call that made it, once.
    unsafe { OwnedFd::from_raw_fd(fresh) }
}

/// Gives every signal its default action and unblocks all: an ignored signal would stay
/// ignored in every program that is executed from here.
#[expect(
    unsafe_code,
    reason = "the C library refuses two signals that it uses itself"
)]
pub(super) fn reset_signals() {
    const SIGNALS: i32 = 64;
    const MASK_BYTES: usize = 8;
    // The kernel's structure begins with the action, of which the default is 0, and is
    // not larger than this on any architecture.
    let default_action = [0_u64; 8];
    for signal in 1..=SIGNALS {
        // SAFETY: the kernel reads the structure during the call, and the default action
        // runs no code of ours. SIGKILL and SIGSTOP are refused, which is no loss.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default_action.as_ptr(),
                std::ptr::null_mut::<u64>(),
                MASK_BYTES,
            )
        };
    }
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}

/// Sets the limits that a login on a plain Linux system has, whatever the simulator's are.
pub(super) fn reset_limits() {
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    let limits = [
        (Resource::RLIMIT_CORE, 0, RLIM_INFINITY),
        (Resource::RLIMIT_STACK, 8 << 20, RLIM_INFINITY),
        (Resource::RLIMIT_NOFILE, 1024, 1 << 19),
        (Resource::RLIMIT_MEMLOCK, 8 << 20, 8 << 20),
        (Resource::RLIMIT_CPU, RLIM_INFINITY, RLIM_INFINITY),
        (Resource::RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY),
        (Resource::RLIMIT_DATA, RLIM_INFINITY, RLIM_INFINITY),
        (Resource::RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY),
        (Resource::RLIMIT_RSS, RLIM_INFINITY, RLIM_INFINITY),
        (Resource::RLIMIT_NPROC, RLIM_INFINITY, RLIM_INFINITY),
        (Resource::RLIMIT_LOCKS, RLIM_INFINITY, RLIM_INFINITY),
        (Resource::RLIMIT_NICE, 0, 0),
        (Resource::RLIMIT_RTPRIO, 0, 0),
        (Resource::RLIMIT_RTTIME, RLIM_INFINITY, RLIM_INFINITY),
    ];
    for (resource, soft, hard) in limits {
        if setrlimit(resource, soft, hard).is_err()
            && let Ok((_, ceiling)) = getrlimit(resource)
        {
            // Without rights a hard limit can only be kept.
            let _ = setrlimit(resource, soft.min(ceiling), ceiling);
        }
    }
}

/// Makes the terminal behind `slave` the controlling terminal of this session's leader.
#[expect(unsafe_code, reason = "a terminal request has no safe wrapper")]
pub(super) fn take_terminal(slave: impl AsFd) -> io::Result<()> {
    // SAFETY: the request takes a number and no pointer.
    let result = unsafe { libc::ioctl(slave.as_fd().as_raw_fd(), libc::TIOCSCTTY, 0) };
    nix::errno::Errno::result(result)?;
    Ok(())
}

/// Sets the size of a terminal in characters.
#[expect(unsafe_code, reason = "a terminal request has no safe wrapper")]
pub(super) fn resize_terminal(master: impl AsFd, columns: u16, rows: u16) -> io::Result<()> {
    let size = libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the request reads one `winsize`, which lives until the call returns.
    let result = unsafe { libc::ioctl(master.as_fd().as_raw_fd(), libc::TIOCSWINSZ, &size) };
    nix::errno::Errno::result(result)?;
    Ok(())
}

/// Gives up, for every program to come, the rights over what a Devbox shares with its
/// host: the clock, the kernel's modules and log, raw hardware, new devices, reboot.
#[expect(unsafe_code, reason = "dropping a capability has no safe wrapper")]
pub(super) fn drop_host_capabilities() {
    const SYS_MODULE: i32 = 16;
    const SYS_RAWIO: i32 = 17;
    const SYS_BOOT: i32 = 22;
    const SYS_TIME: i32 = 25;
    const MKNOD: i32 = 27;
    const SYSLOG: i32 = 34;
    for capability in [SYS_MODULE, SYS_RAWIO, SYS_BOOT, SYS_TIME, MKNOD, SYSLOG] {
        // SAFETY: the request takes numbers. A capability unknown to the kernel is
        // refused, and then nobody has it.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
}
