"""NS-NMF on real data, start to end: `make demo` runs this file.

The data are scikit-learn's copy of the Wisconsin diagnostic breast cancer set, cut down as in the benchmark collection
that the paper uses: all 357 benign cases and ten malignant ones. The labels serve only to count what was found.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from penstock import NSNMF


def rare_malignant(n_malignant: int = 10) -> tuple[pd.DataFrame, pd.Series]:
    """The benign cases and the first few malignant ones, and which are which (True: malignant)."""
    X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
    malignant = np.flatnonzero(benign == 0)[:n_malignant]
    rows = np.sort(np.concatenate([malignant, np.flatnonzero(benign == 1)]))
    return X.iloc[rows], benign.iloc[rows] == 0


def main() -> None:
    X, malignant = rare_malignant()
    print(f"{len(X)} cases of {X.shape[1]} measurements, {malignant.sum()} of them malignant (NS-NMF is not told).\n")
    started = time.perf_counter()
    detector = NSNMF(random_state=0).fit(X)
    print(f"NS-NMF fitted in {time.perf_counter() - started:.1f} s (compiling included, the first time).\n")
    top = detector.top(10)
    top["truth"] = np.where(malignant.loc[top.index], "malignant", "benign")
    top.index.name = "case"
    print("The ten cases that the latent groups explain worst:")
    print(top.to_string(formatters={"score": "{:.3f}".format}))
    found = int(malignant.loc[top.index].sum())
    print(f"\n{found} of the {malignant.sum()} malignant cases are among the top ten; chance would find 0.3.\n")
    print("Try next, in .venv/bin/python:")
    print("    from penstock import NSNMF")
    print("    detector = NSNMF(contamination=0.02).fit(your_table)    # pandas, polars or NumPy")
    print("    detector.top(20)                                        # what stands out, with your index")
    print("    detector.anomaly_score(new_rows)                        # rows it has not seen")
    print('    NSNMF(score="structural")                               # judge a row by its neighbours instead')


if __name__ == "__main__":
    main()
