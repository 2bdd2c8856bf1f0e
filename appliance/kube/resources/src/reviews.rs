//! Table of the kinds that clients create but that are never stored: the reviews of
//! `authentication.k8s.io` and `authorization.k8s.io`, and `TokenRequest`.

use schema::FieldError;

use crate::definition::GroupKind;
use crate::status_error::StatusError;

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// Kind that supports only create and is never stored, such as `TokenReview`.
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
    /// `apiVersion` of the kind; `None` if the path's group and version are those of the kind.
    pub api_version: Option<&'static str>,
    /// True if the path contains a namespace.
    pub namespaced: bool,
    /// Type of the review, which determines the response.
    pub review_type: ReviewType,
}

/// Type of a [`Review`], named after its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewType {
    /// Returns the user of the request.
    SelfSubject,
    /// Returns the user of a token.
    Token,
    /// Decides if the user of the request has a permission.
    SelfSubjectAccess,
    /// Decides if another user has a permission.
    SubjectAccess,
    /// Decides if another user has a permission in one namespace.
    LocalSubjectAccess,
    /// Lists all permissions of the user of the request.
    SelfSubjectRules,
    /// Issues a token for a `ServiceAccount`.
    TokenRequest,
}

const fn review(
    group: &'static str,
    resource: &'static str,
    kind: &'static str,
    review_type: ReviewType,
) -> Review {
    let versions = &["v1"];
    Review { group, versions, resource, kind, api_version: None, namespaced: false, review_type }
}

/// All kinds of reviews, and the token request.
pub const REVIEWS: [Review; 7] = [
    Review {
        versions: &["v1", "v1beta1", "v1alpha1"],
        ..review(AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview", ReviewType::SelfSubject)
    },
    review(AUTHENTICATION, "tokenreviews", "TokenReview", ReviewType::Token),
    Review {
        namespaced: true,
        ..review(
            AUTHORIZATION,
            "localsubjectaccessreviews",
            "LocalSubjectAccessReview",
            ReviewType::LocalSubjectAccess,
        )
    },
    review(
        AUTHORIZATION,
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        ReviewType::SelfSubjectAccess,
    ),
    review(
        AUTHORIZATION,
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        ReviewType::SelfSubjectRules,
    ),
    review(AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview", ReviewType::SubjectAccess),
    Review {
        namespaced: true,
        api_version: Some("authentication.k8s.io/v1"),
        ..review("", "serviceaccounts/token", "TokenRequest", ReviewType::TokenRequest)
    },
];

impl Review {
    /// Finds the review at `PLURAL` or `PLURAL/SUBRESOURCE` of `group`; `None` if unknown.
    pub fn find(group: &str, resource: &str) -> Option<&'static Self> {
        REVIEWS.iter().find(|one| one.group == group && one.resource == resource)
    }

    /// Returns true if a create has no side effect; false only for the token request.
    pub fn is_read_only(&self) -> bool {
        self.review_type != ReviewType::TokenRequest
    }

    fn group_kind(&self) -> GroupKind<'_> {
        let other = self.api_version.and_then(|text| text.split_once('/'));
        GroupKind { group: other.map_or(self.group, |(group, _)| group), kind: self.kind }
    }

    /// Returns the error 422 for a review with invalid fields.
    pub fn invalid(&self, name: &str, errors: &[FieldError]) -> StatusError {
        StatusError::invalid_kind(self.group_kind(), name, errors)
    }
}
