"""Build the package, check its description, install the wheel into an empty environment, and find faults with it.

Run by `make package`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(*command: object, folder: Path = ROOT) -> str:
    """Run a command, and end if it fails."""
    ran = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


def main() -> None:
    """Build, check, install, run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "hatchling", "build", "-d", folder)
        wheel, sdist = *folder.glob("*.whl"), *folder.glob("*.tar.gz")
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
        venv.create(folder / "empty", with_pip=True)
        python = folder / "empty" / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
        penstock = folder / "empty" / "bin" / "penstock"
        run(penstock, "simulate", "hydropower", "sample", "--small", folder=folder)
        summary = run(penstock, "detect", "sample/plant.csv", "--report", "report.html", folder=folder)
        if "stand out" not in summary or not (folder / "report.html").exists():
            sys.exit(f"The installed package finds nothing:\n{summary}")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB.")
        print(next(line for line in summary.splitlines() if "stand out" in line))


if __name__ == "__main__":
    main()
