//! The switches that choose between named behaviours. Each first variant is
//! the default unless it says otherwise.

use serde::{Deserialize, Serialize};

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }
    };
}

choice! {
    /// What `optimistic_timeout: 0` means to `execute` (unknown).
    ZeroTimeout {
        /// Answer at once.
        #[default]
        Immediate,
        /// As if the field were absent: the default wait.
        Default,
    }
}

choice! {
    /// How `execute` answers when its optimistic wait ends first.
    OptimisticExpiry {
        /// 200 with a running view (certain: clients rely on it).
        #[default]
        Running,
        /// 408, which the specification also lists.
        RequestTimeout,
    }
}

choice! {
    /// Which end of a chunk the `offset` of a stream event names (unknown; no
    /// client that echoes the last one resumes without loss or repetition
    /// unless it is the end).
    ChunkOffset {
        /// The next unread byte.
        #[default]
        End,
        /// The first byte of the chunk.
        Start,
    }
}

choice! {
    /// What stream offsets count (unknown).
    OffsetUnit {
        /// UTF-8 bytes of the text sent so far.
        #[default]
        Decoded,
        /// Bytes that the command wrote.
        Raw,
    }
}

choice! {
    /// How a view shows an output that is empty.
    EmptyOutput {
        /// `""`.
        #[default]
        Text,
        /// The field is left out.
        Omitted,
        /// `null`.
        Null,
    }
}

choice! {
    /// What becomes of an execution that is sent stdin.
    StdinSupport {
        /// It reads what was sent.
        #[default]
        Works,
        /// It is killed, as the official clients' authors saw it.
        Kills,
    }
}

choice! {
    /// What runs commands.
    CommandShell {
        /// `bash`, as on the service.
        #[default]
        Bash,
        /// `dash`.
        Dash,
        /// `busybox sh`.
        Busybox,
    }
}

choice! {
    /// When the lifetime of a box starts to count (unknown).
    LifetimeStart {
        /// At its creation.
        #[default]
        Create,
        /// When it first runs.
        Running,
        /// Each time it comes to run, also after a resume.
        Resume,
    }
}

choice! {
    /// When an edited network policy holds for a box that is already there
    /// (unknown).
    PolicyEdits {
        /// When it is next resumed.
        #[default]
        NextStart,
        /// Never: it keeps what it was made with.
        Never,
    }
}

choice! {
    /// What a launch command that fails does to its box (unknown).
    LaunchFailure {
        /// The box ends in `failure` with `execution_failed`.
        #[default]
        Fails,
        /// The box runs all the same.
        Ignored,
    }
}

choice! {
    /// How the name filter of the blueprint list matches (unknown).
    NameMatch {
        /// Names that contain it.
        #[default]
        Partial,
        /// Names that are it.
        Exact,
    }
}

choice! {
    /// The answer to a `starting_after` that is no item of the list (unknown).
    UnknownCursor {
        /// 400.
        #[default]
        BadRequest,
        /// An empty last page.
        EmptyPage,
    }
}

choice! {
    /// The order of lists (unknown).
    ListOrder {
        /// Newest first.
        #[default]
        Newest,
        /// Oldest first.
        Oldest,
    }
}

choice! {
    /// How `write_file_contents` reports a write that failed.
    WriteFailure {
        /// 200 with an `exit_status` that is not 0 (certain that it happens).
        #[default]
        ExitStatus,
        /// An error status.
        Status,
    }
}
