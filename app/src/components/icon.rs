//! Icons: one sprite in the document, one `<use>` per place. Drawn on a 16 px grid with the text's colour.

use leptos::prelude::*;

/// The icons of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Icon {
    Overview,
    Clock,
    Rows,
    Bell,
    Page,
    Database,
    Person,
    Search,
    Menu,
    Moon,
    Sun,
    Language,
    Copy,
    Check,
    Cross,
    Warning,
    Lock,
    Empty,
    Refresh,
    Right,
    Keyboard,
    Download,
    SignOut,
}

impl Icon {
    const ALL: [Icon; 23] = [
        Icon::Overview,
        Icon::Clock,
        Icon::Rows,
        Icon::Bell,
        Icon::Page,
        Icon::Database,
        Icon::Person,
        Icon::Search,
        Icon::Menu,
        Icon::Moon,
        Icon::Sun,
        Icon::Language,
        Icon::Copy,
        Icon::Check,
        Icon::Cross,
        Icon::Warning,
        Icon::Lock,
        Icon::Empty,
        Icon::Refresh,
        Icon::Right,
        Icon::Keyboard,
        Icon::Download,
        Icon::SignOut,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Clock => "clock",
            Self::Rows => "rows",
            Self::Bell => "bell",
            Self::Page => "page",
            Self::Database => "database",
            Self::Person => "person",
            Self::Search => "search",
            Self::Menu => "menu",
            Self::Moon => "moon",
            Self::Sun => "sun",
            Self::Language => "language",
            Self::Copy => "copy",
            Self::Check => "check",
            Self::Cross => "cross",
            Self::Warning => "warning",
            Self::Lock => "lock",
            Self::Empty => "empty",
            Self::Refresh => "refresh",
            Self::Right => "right",
            Self::Keyboard => "keyboard",
            Self::Download => "download",
            Self::SignOut => "sign-out",
        }
    }

    fn drawing(self) -> &'static str {
        match self {
            Self::Overview => "M2 9h4v5H2zM6.5 5h4v9h-4zM11 2h3.5v12H11z",
            Self::Clock => "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 4.500V8l2.500 1.500",
            Self::Rows => "M2.500 4h11M2.500 8h11M2.500 12h11",
            Self::Bell => {
                "M8 2.500a4 4 0 0 0-4 4C4 9.500 2.500 11 2.500 11h11S12 9.500 12 6.500a4 4 0 0 0-4-4zM6.500 13.500h3"
            }
            Self::Page => "M4 2.500h6l2.500 2.500v8.500H4zM6 7.500h4M6 10h4",
            Self::Database => {
                "M13 4c0 1.100-2.200 2-5 2S3 5.100 3 4s2.200-2 5-2 5 .9 5 2zM3 4v8c0 1.100 2.200 2 5 2s5-.9 5-2V4M3 8c0 1.100 2.200 2 5 2s5-.9 5-2"
            }
            Self::Person => {
                "M8 3a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5zM3 13.500c.5-2.500 2.500-4 5-4s4.500 1.500 5 4"
            }
            Self::Search => "M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9zM10.300 10.300l3.200 3.200",
            Self::Menu => "M2.500 4.500h11M2.500 8h11M2.500 11.500h11",
            Self::Moon => "M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500z",
            Self::Sun => {
                "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1.500v1.200M8 13.300v1.200M1.500 8h1.200M13.300 8h1.200M3.400 3.400l.9.9M11.700 11.700l.9.9M3.400 12.600l.9-.9M11.700 4.300l.9-.9"
            }
            Self::Language => {
                "M2 4h7M5.500 2.500V4c0 3-1.500 5.500-3.500 7M4 6.500c.8 2 2.300 3.500 4.500 4.500M8 14l3-7.500L14 14M9 11.500h4"
            }
            Self::Copy => "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3",
            Self::Check => "M3 8.500 6.500 12 13 4.500",
            Self::Cross => "M4 4l8 8M12 4l-8 8",
            Self::Warning => "M8 2.500 14.500 13.500h-13zM8 6.500v3M8 11.500v.2",
            Self::Lock => "M4 7.500h8v6H4zM5.500 7.500V5a2.500 2.500 0 0 1 5 0v2.500",
            Self::Empty => "M2.500 9.500h3l1 2h3l1-2h3M2.500 9.500l2-6h7l2 6v4h-11z",
            Self::Refresh => "M13 8a5 5 0 1 1-1.500-3.500L13 6M13 2.500V6H9.500",
            Self::Right => "M6 3.500 10.500 8 6 12.500",
            Self::Keyboard => {
                "M1.500 4h13v8h-13zM4 6.500h.2M6.500 6.500h.2M9 6.500h.2M11.500 6.500h.2M4.500 9.500h7"
            }
            Self::Download => "M8 2.500v8M4.500 7.500 8 11l3.500-3.500M3 13.500h10",
            Self::SignOut => "M6.500 3h-3v10h3M10 5l3 3-3 3M13 8H6.500",
        }
    }

    /// The icon in a place where a word says the same; hidden from screen readers.
    pub fn view(self) -> impl IntoView {
        view! {
            <svg class="icon" aria-hidden="true"><use href=format!("#i-{}", self.name())></use></svg>
        }
    }
}

/// The drawings, once a document.
#[component]
pub fn Sprite() -> impl IntoView {
    let symbols = Icon::ALL.map(|icon| {
        view! {
            <symbol id=format!("i-{}", icon.name()) viewBox="0 0 16 16"><path d=icon.drawing()></path></symbol>
        }
    });
    view! { <svg class="sprite" aria-hidden="true">{symbols.into_iter().collect_view()}</svg> }
}
