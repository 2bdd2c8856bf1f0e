//! HTTP handlers of the users of the pages. Only administrators may use the API group
//! `box.tinbox.dev`.

use std::sync::Arc;

use apiserver::failure;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch};
use axum::{Json, Router};
use box_owner::users::{Role, User};
use box_owner::{AccessError, Owner};
use serde_json::json;
use status::access::{NewPageUser, PageUser, PageUserChange};
use tokio::sync::Mutex;

const ROOT: &str = "/apis/box.tinbox.dev/v1alpha1/users";

#[derive(Clone)]
struct Users {
    owner: Arc<Owner>,
    /// Held while a request hashes a passphrase, because a hash needs much memory.
    turn: Arc<Mutex<()>>,
}

/// Returns the routes of users: a GET of `…/users` lists all users, and a POST with a
/// [`NewPageUser`] adds one. A PATCH of `…/users/NAME` with a [`PageUserChange`] changes role or
/// passphrase, and a DELETE removes the user.
pub fn router(owner: Arc<Owner>) -> Router {
    Router::new()
        .route(ROOT, get(list).post(add))
        .route(&format!("{ROOT}/{{name}}"), patch(change).delete(remove))
        .with_state(Users { owner, turn: Arc::default() })
}

impl Users {
    /// Runs `work`, which may hash a passphrase and writes to disk, on a thread that may block.
    async fn run(
        &self,
        work: impl FnOnce(&Owner) -> Result<(), AccessError> + Send + 'static,
    ) -> Result<(), Response> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let owner = Arc::clone(&self.owner);
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            if !owner.claimed() {
                return Err(AccessError::Unclaimed);
            }
            work(&owner)
        });
        done.await.unwrap_or(Err(AccessError::Busy)).map_err(|error| refused(&error))
    }

    fn user(&self, name: &str) -> Response {
        let all = self.owner.users();
        match all.iter().find(|user| user.name == name) {
            Some(user) => Json(page_user(user)).into_response(),
            None => refused(&AccessError::NoUser(name.to_owned())),
        }
    }
}

fn page_user(user: &User) -> PageUser {
    PageUser {
        name: user.name.clone(),
        role: user.role.word().to_owned(),
        ssh_keys: user.ssh_keys.len() as u64,
        owner: user.is_owner(),
    }
}

async fn list(State(users): State<Users>) -> Response {
    let all: Vec<PageUser> = users.owner.users().iter().map(page_user).collect();
    Json(json!({ "users": all })).into_response()
}

async fn add(
    State(users): State<Users>,
    request: Result<Json<NewPageUser>, JsonRejection>,
) -> Result<Response, Response> {
    let Json(NewPageUser { name, role, passphrase }) = request.map_err(unread)?;
    let role = Role::named(&role).ok_or_else(|| no_role(&role))?;
    let new = name.clone();
    users.run(move |owner| owner.add_user(&new, role, passphrase.expose())).await?;
    let mut answer = users.user(&name);
    *answer.status_mut() = StatusCode::CREATED;
    Ok(answer)
}

async fn change(
    State(users): State<Users>,
    Path(name): Path<String>,
    request: Result<Json<PageUserChange>, JsonRejection>,
) -> Result<Response, Response> {
    let Json(PageUserChange { role, passphrase }) = request.map_err(unread)?;
    let role = match role {
        Some(word) => Some(Role::named(&word).ok_or_else(|| no_role(&word))?),
        None => None,
    };
    let changed = name.clone();
    users
        .run(move |owner| {
            // The passphrase first: its check may refuse the request.
            if let Some(passphrase) = passphrase {
                owner.reset_passphrase(&changed, passphrase.expose())?;
            }
            role.map_or(Ok(()), |role| owner.set_role(&changed, role))
        })
        .await?;
    Ok(users.user(&name))
}

async fn remove(
    State(users): State<Users>,
    Path(name): Path<String>,
) -> Result<Response, Response> {
    let removed = name.clone();
    users.run(move |owner| owner.remove_user(&removed)).await?;
    Ok(Json(json!({ "removed": name })).into_response())
}

fn no_role(word: &str) -> Response {
    let why = format!("expected the role viewer, operator or admin, found {word:?}");
    failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &why)
}

fn unread(error: JsonRejection) -> Response {
    failure(StatusCode::BAD_REQUEST, "BadRequest", &error.body_text())
}

fn refused(error: &AccessError) -> Response {
    let why = error.to_string();
    let (status, reason) = match error {
        AccessError::NoUser(_) => (StatusCode::NOT_FOUND, "NotFound"),
        AccessError::Taken(_) => (StatusCode::CONFLICT, "AlreadyExists"),
        AccessError::UserName | AccessError::Passphrase(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "Invalid")
        }
        AccessError::Unclaimed | AccessError::TooManyUsers | AccessError::Damaged => {
            (StatusCode::CONFLICT, "Conflict")
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
    };
    failure(status, reason, &why)
}

#[cfg(test)]
mod tests;
