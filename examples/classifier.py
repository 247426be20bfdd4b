"""A scikit-learn classifier on digits of which four labels in ten are wrong: it learns the digits and finds the labels.

Needs the extra: pip install 'dividemix[sklearn]'
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from dividemix import DivideMixClassifier


def main() -> None:
    """Train on wrong labels, test on right ones."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=700, random_state=0)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(y_train)) < 0.4
    given = np.where(wrong, (y_train + rng.integers(1, 10, len(y_train))) % 10, y_train)

    ordinary = LogisticRegression().fit(X_train, given)
    ours = DivideMixClassifier(random_state=0).fit(X_train, given)
    print(f"test accuracy: {ordinary.score(X_test, y_test):.3f} logistic regression")
    print(f"               {ours.score(X_test, y_test):.3f} DivideMix")

    flagged = ours.is_label_issue_
    print(f"flagged {flagged.sum()} of {len(given)} labels; {wrong[flagged].mean():.0%} of them are wrong")
    print(f"that is {flagged[wrong].mean():.0%} of the {wrong.sum()} wrong ones")
    for i in ours.label_scores_.argsort()[:3]:
        suggested = ours.predict(X_train[i : i + 1])[0]
        print(f"sample {i}: given {given[i]}, suggested {suggested}, in truth {y_train[i]}")


if __name__ == "__main__":
    main()
