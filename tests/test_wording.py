"""The words of the command line. Oracle: the messages written out by hand."""

import pytest

from dividemix.wording import plainly, unknown_argument, with_dashes

FLAGS = {"--lr", "--noise", "--test", "--root", "--out", "--resume", "--overwrite", "--epochs", "--kernels", "--method"}
FLAGS |= {"--net_width", "--image_size", "--text_column", "--annotators", "--data"}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("lr is 0: it must be a number > 0", "--lr is 0: it must be a number > 0"),
        ("the loss is not finite; try a smaller lr", "the loss is not finite; try a smaller --lr"),
        ("lr cannot be used with epochs: remove one", "--lr cannot be used with --epochs: remove one"),
        ("no samples: name them by test", "no samples: name them by --test"),
        ("name it, for example test 'a b'", "name it, for example --test 'a b'"),
        ("cifar10 needs root: a folder", "cifar10 needs --root: a folder"),
        ("here: no such folder; root must be the folder", "here: no such folder; --root must be the folder"),
        ("root here has no meaning for x: leave it out", "--root here has no meaning for x: leave it out"),
        ("test and text_column are both given: x", "--test and --text_column are both given: x"),
        ("annotators has no meaning for x", "--annotators has no meaning for x"),
        (
            "x: add resume or overwrite, or choose another out",
            "x: add --resume or --overwrite, or choose another --out",
        ),
        ("set kernels to torch, or to auto", "set kernels to torch, or to auto"),  # no word before it
        ("cannot be: set kernels to torch, or to auto", "cannot be: set --kernels to torch, or to auto"),
        ("set a smaller net_width or image_size", "set a smaller --net_width or --image_size"),
        ("a.csv: name their column by text_column", "a.csv: name their column by --text_column"),
    ],
)
def test_a_flag_gets_its_dashes(message: str, shown: str) -> None:
    assert with_dashes(message, FLAGS) == shown


@pytest.mark.parametrize(
    "message",
    [
        "c.yaml: lr is 0",
        "noise 'x' is unknown",
        "memory is low",
        "a.csv: no column 'text_column', it has 'image_size'",
        "image_size/net_width.csv: no such file",
        "data/image_size.csv: no such file",
        "the checkpoint is of another method than robust",
        "use a run with wrong labels",
        "unknown setting 'x': the settings are data, net_width, image_size",
        "c.yaml: unknown setting 'netwidth': did you mean net_width?",
        "c.yaml: method mixup has no setting net_width: leave it out",
        "--image_size is 3: it must be an integer >= 8",
    ],
)
def test_other_words_get_none(message: str) -> None:
    assert with_dashes(message, FLAGS) == message


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "argument COMMAND: invalid choice: 'trian' (choose from 'train', 'resume')",
            "unknown command 'trian': did you mean train?",
        ),
        (
            "argument COMMAND: invalid choice: 'fly' (choose from 'train', 'resume')",
            "unknown command 'fly': the commands are train, resume",
        ),
        (
            "argument --to: invalid choice: 'labelstudio' (choose from label-studio, fiftyone)",  # Python 3.12
            "--to is 'labelstudio': it must be one of label-studio, fiftyone (did you mean label-studio?)",
        ),
        ("argument --extend: invalid int value: 'x'", "--extend is 'x': it must be an integer"),
        ("argument --accept_above: invalid float value: 'x'", "--accept_above is 'x': it must be a number"),
        ("argument --net_width: expected one argument", "--net_width needs a value: see dividemix sweep --help"),
        (
            "the following arguments are required: DATA, --vary",
            "dividemix sweep needs DATA and --vary: see dividemix sweep --help",
        ),
        ("anything else", "anything else"),
    ],
)
def test_argparse_speaks_as_the_library_does(message: str, shown: str) -> None:
    assert plainly(message, "dividemix sweep") == shown


def test_an_unknown_word_is_named_with_what_may_have_been_meant() -> None:
    assert unknown_argument("--lrr=3", "dividemix train", FLAGS) == "unknown flag --lrr: did you mean --lr?"
    assert unknown_argument("--learning_rate=3", "dividemix train", FLAGS) == (
        "unknown flag --learning_rate: did you mean --lr?"
    )
    assert unknown_argument("--xyzzy", "dividemix train", FLAGS) == "unknown flag --xyzzy: see dividemix train --help"
    assert unknown_argument("new", "dividemix evaluate", FLAGS) == (
        "unexpected argument 'new': test data is given by --test new"
    )
    told = "unexpected argument 'mixup': for the settings of a method: dividemix train --method mixup --help"
    assert unknown_argument("mixup", "dividemix methods", FLAGS) == told
    assert "resume RUN --extend N" in unknown_argument("--epochs=5", "dividemix resume", ())
    assert unknown_argument("lr", "dividemix train", FLAGS) == "unexpected argument 'lr': see dividemix train --help"
