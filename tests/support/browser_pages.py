"""Open a page in a real browser, and see that nothing goes wrong on it."""

from __future__ import annotations

from contextlib import contextmanager


@contextmanager
def opened_page(browser, url, is_own, *, width=1280, height=900, **options):
    """A page; at its end: no error, message or dialog, nothing refused by the policy, no address asked but its own.

    Its answers may take 300 s: a busy machine is not an error.
    """
    troubles = []
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(300_000)
    page = context.new_page()
    page.on("console", lambda message: troubles.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    page.on("request", lambda request: None if is_own(request.url) else troubles.append(request.url))
    page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.add_init_script(
        "window.refused = [];"
        "document.addEventListener('securitypolicyviolation', (event) => refused.push(event.violatedDirective))"
    )
    try:
        page.goto(url)
        yield page
        assert page.evaluate("window.refused") == []
    except Exception as error:
        error.add_note(f"troubles of the page: {troubles}")
        raise
    finally:
        context.close()
    assert troubles == []
