"""The demo keeps its promises, and says so."""

from holdfast.runtime import demo


def test_the_demo(capsys):
    assert demo.main() == 0
    out = capsys.readouterr().out
    assert "REFUSED, the token is old" in out
    assert "lost 0, done twice 0" in out
    assert out.endswith("Every promise was kept.\n")
