//! [`Policy`]: effects in, a verdict with its reasons out. Pure: no file is opened here.

use std::path::Path;

use agent::{Effect, EffectKind};
use serde::Serialize;

use crate::permission::credentials::Credentials;
use crate::permission::mode::PermissionMode;
use crate::workspace::ResolvedPath;

/// What is decided about a call. Of several verdicts the strictest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may go on.
    Allow,
    /// Somebody must say so.
    Ask,
    /// It may not.
    Deny,
}

/// Why a verdict is what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// What spoke.
    pub source: ReasonSource,
    /// What it said.
    pub verdict: Verdict,
    /// Why, in a sentence for people and models.
    pub message: String,
}

/// What can speak about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasonSource {
    /// The permission mode.
    Mode,
    /// The list of credentials.
    Credentials,
    /// What is known, or not known, of the call's effects.
    Analysis,
}

/// A verdict with everything that led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The strictest of the reasons' verdicts.
    pub verdict: Verdict,
    /// The effects, with the paths that will really be opened.
    pub effects: Vec<Effect>,
    /// One for each effect, and one for what the tool does not say.
    pub reasons: Vec<Reason>,
}

impl Judgement {
    /// The sentences of those reasons that led to the verdict.
    pub fn because(&self) -> Vec<String> {
        let decisive = self.reasons.iter().filter(|reason| reason.verdict == self.verdict);
        let mut messages: Vec<String> = decisive.map(|reason| reason.message.clone()).collect();
        messages.dedup();
        messages
    }
}

/// One effect of a call, with its path resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The effect as the tool declared it.
    pub effect: Effect,
    /// What its path will really open.
    pub path: Option<ResolvedPath>,
}

/// Directories inside a workspace whose content is run or obeyed by programs later, so that a change
/// there is more than an edit.
const OBEYED: &[&str] = &[".git", ".coding-agent"];

/// The rules by which calls are judged.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The base.
    pub mode: PermissionMode,
    /// What no mode allows.
    pub credentials: Credentials,
}

impl Policy {
    /// Judges a call that declared all its effects.
    pub fn judge(&self, effects: &[Judged]) -> Judgement {
        let reasons: Vec<Reason> = effects.iter().map(|effect| self.judge_one(effect)).collect();
        let verdict = reasons.iter().map(|reason| reason.verdict).max().unwrap_or(Verdict::Allow);
        let effects = effects.iter().map(Judged::resolved).collect();
        Judgement { verdict, effects, reasons }
    }

    /// Judges a call whose effects are not known.
    pub fn judge_undeclared(&self, tool: &str) -> Judgement {
        let verdict = self.unseen();
        let message = format!("{tool} does not say what it will do");
        let reasons = vec![Reason { source: ReasonSource::Analysis, verdict, message }];
        Judgement { verdict, effects: vec![Effect::unknown()], reasons }
    }

    /// The verdict on what cannot be seen into.
    fn unseen(&self) -> Verdict {
        match self.mode {
            PermissionMode::ReadOnly => Verdict::Deny,
            PermissionMode::Ask | PermissionMode::AcceptEdits | PermissionMode::Auto => {
                Verdict::Ask
            }
            PermissionMode::Bypass => Verdict::Allow,
        }
    }

    fn judge_one(&self, judged: &Judged) -> Reason {
        match (judged.effect.kind, &judged.path) {
            (EffectKind::Read, Some(path)) => self.judge_read(path),
            (EffectKind::Write | EffectKind::Delete, Some(path)) => self.judge_change(path),
            (EffectKind::Execute, _) => Reason {
                source: ReasonSource::Analysis,
                verdict: self.unseen(),
                message: "what a command does is not analysed yet, so every command is asked \
                          about"
                    .to_owned(),
            },
            (_, _) => Reason {
                source: ReasonSource::Analysis,
                verdict: self.unseen(),
                message: "it does something that this version cannot judge".to_owned(),
            },
        }
    }

    fn judge_read(&self, path: &ResolvedPath) -> Reason {
        if let Some(reason) = self.judge_credentials(path) {
            return reason;
        }
        let shown = &path.shown;
        let (verdict, message) = match (self.mode, &path.root) {
            (PermissionMode::Bypass, _) => {
                (Verdict::Allow, format!("mode bypass allows reading {shown}"))
            }
            (_, Some(_)) => (Verdict::Allow, format!("{shown} is in the workspace")),
            (_, None) => (Verdict::Ask, format!("{shown} is outside the workspace")),
        };
        Reason { source: ReasonSource::Mode, verdict, message }
    }

    fn judge_change(&self, path: &ResolvedPath) -> Reason {
        if let Some(reason) = self.judge_credentials(path) {
            return reason;
        }
        let shown = &path.shown;
        let (verdict, message) = match (self.mode, &path.root) {
            (PermissionMode::Bypass, _) => {
                (Verdict::Allow, format!("mode bypass allows changing {shown}"))
            }
            (PermissionMode::ReadOnly, _) => {
                (Verdict::Deny, format!("mode read-only changes nothing, so not {shown} either"))
            }
            (_, None) => (Verdict::Ask, format!("{shown} is outside the workspace")),
            (PermissionMode::AcceptEdits | PermissionMode::Auto, Some(root)) => {
                match obeyed(&path.path, root) {
                    Some(directory) => (
                        Verdict::Ask,
                        format!("programs obey what is in {directory}, so {shown} is asked about"),
                    ),
                    None => (Verdict::Allow, format!("mode {} allows changing {shown}", self.mode)),
                }
            }
            (PermissionMode::Ask, Some(_)) => {
                (Verdict::Ask, format!("mode ask asks before changing {shown}"))
            }
        };
        Reason { source: ReasonSource::Mode, verdict, message }
    }

    fn judge_credentials(&self, path: &ResolvedPath) -> Option<Reason> {
        // A link that lies among credentials is one of them, wherever its content is kept.
        let mut places = std::iter::once(&path.path).chain(&path.links);
        places.any(|place| self.credentials.contain(place)).then(|| Reason {
            source: ReasonSource::Credentials,
            verdict: Verdict::Deny,
            message: format!("{} may hold credentials, which no mode gives out", path.shown),
        })
    }
}

impl Judged {
    fn resolved(&self) -> Effect {
        let mut effect = self.effect.clone();
        if let Some(path) = &self.path {
            effect.path = Some(path.path.clone());
        }
        effect
    }
}

/// The directory below `root` that makes a change to `path` more than an edit.
fn obeyed(path: &Path, root: &Path) -> Option<&'static str> {
    let below = path.strip_prefix(root).ok()?;
    below.components().find_map(|component| {
        // Without regard to case: some file systems have none.
        let is_it = |directory: &&str| component.as_os_str().eq_ignore_ascii_case(directory);
        OBEYED.iter().copied().find(is_it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> ResolvedPath {
        let root = path.starts_with("/work/").then(|| "/work".into());
        ResolvedPath { path: path.into(), links: Vec::new(), root, shown: path.to_owned() }
    }

    fn verdict(mode: PermissionMode, effect: &Effect) -> Verdict {
        let policy =
            Policy { mode, credentials: Credentials::new(Some(Path::new("/home/ada")), &[]) };
        let path = effect.path.as_ref().and_then(|path| path.to_str()).map(at);
        policy.judge(&[Judged { effect: effect.clone(), path }]).verdict
    }

    /// SPEC P1, P5, P7
    #[test]
    fn modes_decide_by_effect_and_place() {
        use PermissionMode::{AcceptEdits, Ask, Bypass, ReadOnly};
        let (yes, ask, no) = (Verdict::Allow, Verdict::Ask, Verdict::Deny);
        let modes = [ReadOnly, Ask, AcceptEdits, Bypass];
        let cases = [
            (Effect::read("/work/a"), [yes, yes, yes, yes]),
            (Effect::read("/etc/passwd"), [ask, ask, ask, yes]),
            (Effect::read("/home/ada/.ssh/id_rsa"), [no, no, no, no]),
            (Effect::read("/work/.env"), [no, no, no, no]),
            (Effect::write("/work/a"), [no, ask, yes, yes]),
            (Effect::write("/work/.git/hooks/pre-commit"), [no, ask, ask, yes]),
            (Effect::write("/work/sub/.coding-agent/config.toml"), [no, ask, ask, yes]),
            (Effect::write("/work/.GIT/hooks/pre-commit"), [no, ask, ask, yes]),
            (Effect::write("/etc/passwd"), [no, ask, ask, yes]),
            (Effect::write("/home/ada/.ssh/authorized_keys"), [no, no, no, no]),
            (Effect::execute(vec!["true".to_owned()]), [no, ask, ask, yes]),
        ];
        for (effect, expected) in cases {
            let verdicts = modes.map(|mode| verdict(mode, &effect));
            assert_eq!(verdicts, expected, "{effect:?}");
        }
    }

    /// SPEC P7
    #[test]
    fn a_link_among_credentials_is_one() {
        let credentials = Credentials::new(Some(Path::new("/home/ada")), &[]);
        let policy = Policy { mode: PermissionMode::Bypass, credentials };
        let verdict = |link: &str| {
            let path = ResolvedPath { links: vec![link.into()], ..at("/work/kept") };
            let judged = Judged { effect: Effect::read("x"), path: Some(path) };
            policy.judge(&[judged]).verdict
        };
        assert_eq!(verdict("/work/.env"), Verdict::Deny);
        assert_eq!(verdict("/home/ada/.ssh/id_rsa"), Verdict::Deny);
        assert_eq!(verdict("/work/link"), Verdict::Allow);
    }

    /// SPEC P1
    #[test]
    fn the_strictest_effect_decides_and_says_why() {
        let policy = Policy { mode: PermissionMode::Ask, credentials: Credentials::default() };
        let effects = [Effect::read("/work/a"), Effect::write("/work/a")]
            .map(|effect| Judged { effect, path: Some(at("/work/a")) });
        let judgement = policy.judge(&effects);
        assert_eq!(judgement.verdict, Verdict::Ask);
        assert_eq!(judgement.because(), ["mode ask asks before changing /work/a"]);
        assert_eq!(judgement.reasons.len(), 2);
        assert_eq!(policy.judge(&[]).verdict, Verdict::Allow);
        assert_eq!(policy.judge_undeclared("Foreign").verdict, Verdict::Ask);
    }
}
