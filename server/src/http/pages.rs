//! The pages and their server functions, with everything they are promised in their context.

use super::assets;
use super::problem::Problem;
use super::sign_in::PageSession;
use super::visitor::Visitor;
use super::web::Web;
use app::context::{Assets, Now, SessionHandle, Settings};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use leptos::config::LeptosOptions;
use leptos::nonce::Nonce;
use leptos::prelude::{provide_context, use_context};
use leptos_axum::LeptosRoutes;
use std::sync::Arc;

/// Where the server functions live; they answer strangers themselves.
const FUNCTIONS: &str = "/api/fn/";
const LOGIN: &str = "/login";

/// All pages and server functions; unknown addresses get the not-found page.
pub fn router(web: &Web) -> Router {
    let options = LeptosOptions::builder().output_name("amends").build();
    let context = context(web);
    let listed = leptos_axum::generate_route_list(app::pages::App);
    Router::new()
        .leptos_routes_with_context(&options, listed, context.clone(), app::shell::shell)
        .route_layer(from_fn_with_state(web.clone(), strangers_sign_in))
        .fallback(move |request: Request| unknown(context.clone(), request))
        .with_state(options)
}

/// What [`app::context`] says the server provides, taken from the application and from the request.
fn context(web: &Web) -> impl Fn() + Clone + Send + Sync + 'static {
    let web = web.clone();
    let settings = settings(&web);
    move || {
        provide_context(settings.clone());
        provide_context(Now(web.app.clock.now()));
        provide_context(web.app.console.clone());
        let Some(parts) = use_context::<Parts>() else { return };
        if let Some(nonce) = parts.extensions.get::<Nonce>() {
            provide_context(nonce.clone());
        }
        if let Some(visitor) = parts.extensions.get::<Visitor>() {
            if let Ok(Some(actor)) = &visitor.actor {
                provide_context(actor.clone());
            }
            let session = PageSession { web: web.clone(), visitor: visitor.clone() };
            provide_context(SessionHandle(Arc::new(session)));
        }
    }
}

fn settings(web: &Web) -> Settings {
    let assets::SiteAssets { js, wasm, css, icon } = assets::site();
    Settings {
        base_path: web.base_path().to_owned(),
        display_zone: web.app.settings.display_zone,
        assets: Assets { js, wasm, css, icon },
    }
}

/// Sends strangers to the sign-in page and back here afterwards; says so when nobody can be recognised.
async fn strangers_sign_in(State(web): State<Web>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_open = path == LOGIN || path.starts_with(FUNCTIONS);
    let actor = request.extensions().get::<Visitor>().map(|visitor| visitor.actor.clone());
    match actor {
        _ if is_open => next.run(request).await,
        Some(Ok(Some(_))) => next.run(request).await,
        Some(Err(error @ domain::Error::Unavailable { .. })) => Problem::from(error).into_response(),
        _ => to_sign_in(&web, &request),
    }
}

fn to_sign_in(web: &Web, request: &Request) -> Response {
    let here = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("next", here).finish();
    let location = HeaderValue::from_str(&format!("{}{LOGIN}?{query}", web.base_path()));
    let location = location.unwrap_or(HeaderValue::from_static(LOGIN));
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

/// An address nobody serves: the not-found page for people, a problem for programs.
async fn unknown(context: impl Fn() + Clone + Send + Sync + 'static, request: Request) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads || request.uri().path().starts_with("/api/") {
        return StatusCode::NOT_FOUND.into_response();
    }
    leptos_axum::render_app_async_with_context(context, app::shell::shell)(request).await.into_response()
}
