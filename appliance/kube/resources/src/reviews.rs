//! Table of the kinds that are created and evaluated but never stored: the reviews of
//! `authentication.k8s.io` and `authorization.k8s.io`, and `TokenRequest`.

use schema::FieldError;

use crate::definition::GroupKind;
use crate::status_error::StatusError;

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// A kind that supports only create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Review {
    /// API group of the path.
    pub group: &'static str,
    /// Versions of the path, the preferred one first.
    pub versions: &'static [&'static str],
    /// Path segment: the plural, with the subresource if there is one.
    pub resource: &'static str,
    /// Name of the kind, such as `TokenReview`.
    pub kind: &'static str,
    /// `apiVersion` of the kind if it differs from the path's group and version.
    pub api_version: Option<&'static str>,
    /// True if the path contains a namespace.
    pub namespaced: bool,
    /// Question that the review answers.
    pub question: Question,
}

/// Question that a [`Review`] answers.
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

/// All kinds of reviews, and the token request.
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
    /// Finds the kind at `PLURAL` or `PLURAL/SUBRESOURCE` of a group.
    pub fn find(group: &str, resource: &str) -> Option<&'static Self> {
        REVIEWS.iter().find(|one| one.group == group && one.resource == resource)
    }

    /// Returns true if a create changes nothing: for all kinds except the token request.
    pub fn is_question(&self) -> bool {
        self.question != Question::Token
    }

    fn group_kind(&self) -> GroupKind<'_> {
        let other = self.api_version.and_then(|text| text.split_once('/'));
        GroupKind { group: other.map_or(self.group, |(group, _)| group), kind: self.kind }
    }

    /// Returns 422 with the name of this kind.
    pub fn invalid(&self, name: &str, errors: &[FieldError]) -> StatusError {
        StatusError::invalid_kind(self.group_kind(), name, errors)
    }
}
