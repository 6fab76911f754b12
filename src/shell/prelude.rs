//! What every script begins and ends with, so that it means the same in every shell.
//!
//! Before a script runs, a profile, `BASH_ENV` or an image's own set-up may have defined aliases,
//! functions and options in the shell. The prelude undoes those that would change a script; it
//! cannot undo a profile that ends the shell, which shows as a call without a record.

use super::nonce::Nonce;

/// Aliases are expanded while a command is read, so they go on a line of their own. The backslash
/// keeps an alias of this name from being taken.
const DROP_ALIASES: &str = "\\unalias -a 2>/dev/null\n";

/// A command that signals its whole process group (`kill 0`) must not end the wrapper around it.
/// A handler, unlike an ignored signal, is not passed on to the command.
const SURVIVE_GROUP_SIGNALS: &str = "\\trap : HUP INT QUIT PIPE ALRM TERM USR1 USR2\n";

/// In bash a function can stand in for every builtin but, in its POSIX mode, a special one such as
/// `unset`. The mode follows the variable, which is put back as it was. Only bash has the last two
/// lines' options and traps, which may run inside of subshells and print.
const DROP_FUNCTIONS_AND_OPTIONS: &str = "\
_bs_k=${POSIXLY_CORRECT+kept}
POSIXLY_CORRECT=${POSIXLY_CORRECT-1}
set +aefmuvxC
unset -f alias base64 cd chmod chown command echo env exec exit export head mkdir mktemp mv printf \
readlink return rm set stat test tr trap true umask unset wc
case $_bs_k in
'') unset POSIXLY_CORRECT ;;
esac
unset _bs_k
case ${BASH_VERSION-} in
?*) set +ETk; trap - DEBUG ERR RETURN ;;
esac
";

/// Where a script's record goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The script is a subshell of the service's shell and prints its record to standard output.
    Record,
    /// The script becomes the command; only a failure to start prints, to standard error.
    Live,
}

/// Room for the body of a command's wrapper with a short command, so that it need not grow.
const BODY_BYTES: usize = 2_560;

/// A script in the making.
pub(super) struct Script {
    nonce: Nonce,
    form: Form,
    body: String,
}

impl Script {
    /// A script that ends with a record on standard output.
    pub(super) fn with_record(nonce: &Nonce) -> Self {
        Self {
            nonce: nonce.clone(),
            form: Form::Record,
            body: String::with_capacity(BODY_BYTES),
        }
    }

    /// A script that becomes the command.
    pub(super) fn live(nonce: &Nonce) -> Self {
        Self {
            nonce: nonce.clone(),
            form: Form::Live,
            body: String::with_capacity(BODY_BYTES),
        }
    }

    /// Appends lines, each ended by a newline.
    pub(super) fn push(&mut self, lines: &str) {
        self.body.push_str(lines);
    }

    /// The body under construction, for what is too long to be built apart.
    pub(super) fn body_mut(&mut self) -> &mut String {
        &mut self.body
    }

    /// The whole text, with `first` as the first lines that act.
    ///
    /// The body stands in a compound command, which a shell reads to its end before it runs any of
    /// it: a script that was cut on its way does nothing.
    pub(super) fn text(&self, first: &str) -> String {
        let mut text = String::with_capacity(self.body.len() + 2_048);
        text.push_str(DROP_ALIASES);
        let (opening, closing) = match self.form {
            Form::Record => {
                text.push_str(SURVIVE_GROUP_SIGNALS);
                ("(\n", ")\n")
            }
            Form::Live => ("{\n", "}\n"),
        };
        text.push_str(opening);
        text.push_str(DROP_FUNCTIONS_AND_OPTIONS);
        if self.form == Form::Record {
            text.push_str(SURVIVE_GROUP_SIGNALS);
        }
        text.push_str(first);
        text.push_str(&self.say());
        text.push_str(&self.body);
        text.push_str(closing);
        text
    }

    /// Defines `_bs_say`, which prints its argument as a record.
    ///
    /// The marker and the nonce meet only when it runs, so that a shell that echoes the script
    /// does not print a record.
    fn say(&self) -> String {
        format!(
            "_bs_n={nonce}\n\
             _bs_say() {{\n\
             echo \"\n{marker}:$_bs_n:$1:end:$_bs_n\"{channel}\n\
             }}\n",
            nonce = self.nonce,
            marker = super::frame::MARKER,
            channel = self.channel(),
        )
    }

    /// A command that reports, without `_bs_say`, that the uploaded script is not there.
    pub(super) fn missing_upload(&self) -> String {
        format!(
            "_bs_n={nonce}; \\echo \"\n{marker}:$_bs_n:refused:script:end:$_bs_n\"{channel}; exit {code}",
            nonce = self.nonce,
            marker = super::frame::MARKER,
            channel = self.channel(),
            code = super::live::START_FAILURE_EXIT_CODE,
        )
    }

    fn channel(&self) -> &'static str {
        match self.form {
            Form::Record => "",
            Form::Live => " >&2",
        }
    }

    /// Defines `_bs_refuse`, which runs `cleaning`, reports why nothing was started, and ends.
    pub(super) fn define_refuse(&mut self, cleaning: &str) {
        self.push(&format!(
            "_bs_refuse() {{\n\
             {cleaning}_bs_say \"refused:$1\"\n\
             exit {code}\n\
             }}\n",
            code = super::live::START_FAILURE_EXIT_CODE,
        ));
    }

    /// Refuses when one of `tools` is not there.
    pub(super) fn require_tools(&mut self, tools: &str) {
        self.push(&format!(
            "for _bs_t in {tools}; do\n\
             command -v \"$_bs_t\" >/dev/null 2>&1 || _bs_refuse \"tool:$_bs_t\"\n\
             done\n"
        ));
    }

    /// Goes to the home directory, unless the shell is there already.
    ///
    /// That is where the service starts a command; a profile may have moved on.
    pub(super) fn go_home(&mut self) {
        self.push(
            "case ${HOME-} in\n\
             '' | \"${PWD-}\") ;;\n\
             *) cd \"$HOME\" >/dev/null 2>&1 ;;\n\
             esac\n",
        );
    }
}

/// `path` so that neither `cd` nor a tool takes it for an option, for `-` or for a name to look up
/// in `CDPATH`.
pub(super) fn anchored(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("./{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Script, anchored};
    use crate::shell::Nonce;

    #[test]
    fn b5_the_text_of_a_script_holds_no_record() {
        let nonce = Nonce::from_random([9; 16]);
        let mut script = Script::with_record(&nonce);
        script.define_refuse("");
        let text = script.text("") + &script.missing_upload();
        assert!(text.contains(nonce.as_str()));
        assert!(!text.contains(&format!(":{nonce}")), "{text}");
    }

    #[test]
    fn e3_a_relative_path_is_never_an_option_or_a_search() {
        assert_eq!(anchored("/srv"), "/srv");
        assert_eq!(anchored("-"), "./-");
        assert_eq!(anchored("-P"), "./-P");
        assert_eq!(anchored("a/b"), "./a/b");
    }
}
