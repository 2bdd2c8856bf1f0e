//! Table of the kinds that are created, answered and never stored: the questions of
//! `authentication.k8s.io` and `authorization.k8s.io`, and the request for a token.

use schema::FieldError;

use crate::status_error::StatusError;

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// A kind that is only ever created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Review {
    /// API group of the path.
    pub group: &'static str,
    /// Versions of the path, the preferred one first.
    pub versions: &'static [&'static str],
    /// Plural, and the subresource where it is one: the word in paths.
    pub resource: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// `apiVersion` of the kind where that is not the path's group and version.
    pub api_version: Option<&'static str>,
    /// Whether the path names a namespace.
    pub namespaced: bool,
    /// The question that the kind asks.
    pub question: Question,
}

/// Question that a [`Review`] asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// The user of the request.
    WhoAmI,
    /// The user of a token.
    WhoseToken,
    /// Permission of the user of the request.
    MayI,
    /// Permission of another user.
    MayThey,
    /// Permission of another user in one namespace.
    MayTheyHere,
    /// Every permission of the user of the request.
    WhatMayI,
    /// A new token for a `ServiceAccount`.
    Token,
}

const fn review(
    group: &'static str,
    resource: &'static str,
    kind: &'static str,
    question: Question,
) -> Review {
    let versions = &["v1"];
    Review { group, versions, resource, kind, api_version: None, namespaced: false, question }
}

/// Every such kind.
pub const REVIEWS: [Review; 7] = [
    Review {
        versions: &["v1", "v1beta1", "v1alpha1"],
        ..review(AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview", Question::WhoAmI)
    },
    review(AUTHENTICATION, "tokenreviews", "TokenReview", Question::WhoseToken),
    Review {
        namespaced: true,
        ..review(
            AUTHORIZATION,
            "localsubjectaccessreviews",
            "LocalSubjectAccessReview",
            Question::MayTheyHere,
        )
    },
    review(AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", Question::MayI),
    review(AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview", Question::WhatMayI),
    review(AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview", Question::MayThey),
    Review {
        namespaced: true,
        api_version: Some("authentication.k8s.io/v1"),
        ..review("", "serviceaccounts/token", "TokenRequest", Question::Token)
    },
];

impl Review {
    /// The kind at `PLURAL` or `PLURAL/SUBRESOURCE` of a group.
    pub fn find(group: &str, resource: &str) -> Option<&'static Self> {
        REVIEWS.iter().find(|one| one.group == group && one.resource == resource)
    }

    /// Whether creating one changes nothing: all but the request for a token.
    pub fn is_question(&self) -> bool {
        self.question != Question::Token
    }

    fn group_kind(&self) -> (&str, &str) {
        match self.api_version.and_then(|text| text.split_once('/')) {
            Some((group, _)) => (group, self.kind),
            None => (self.group, self.kind),
        }
    }

    /// 422 in the words of the kind.
    pub fn invalid(&self, name: &str, errors: &[FieldError]) -> StatusError {
        StatusError::invalid_kind(self.group_kind(), name, errors)
    }
}
