"""Ways to train, one file each. All have the members of `Method` in method.py. No torch import.

A new method is one file here with an object `METHOD`, one test, and one line of METHODS.
"""

from dividemix.errors import InputError, shown
from dividemix.foreign import import_foreign, is_foreign
from dividemix.meant import or_meant
from dividemix.methods import (
    abstention,
    bootstrap,
    co_teaching,
    co_teaching_plus,
    cross_entropy,
    cross_fitted,
    d2l,
    decoupling,
    dividemix,
    forward_correction,
    incv,
    joint_optim,
    m_correction,
    mentornet,
    meta_cleaner,
    mixup,
    mlnt,
    pencil,
    reweight,
    robust,
    robust_history,
    robust_vectors,
    selfmix,
)
from dividemix.methods.method import Method

METHODS: dict[str, Method] = {
    "dividemix": dividemix.METHOD,
    "robust": robust.METHOD,
    "cross_entropy": cross_entropy.METHOD,
    "bootstrap": bootstrap.METHOD,
    "forward_correction": forward_correction.METHOD,
    "mixup": mixup.METHOD,
    "decoupling": decoupling.METHOD,
    "co_teaching": co_teaching.METHOD,
    "co_teaching_plus": co_teaching_plus.METHOD,
    "joint_optim": joint_optim.METHOD,
    "pencil": pencil.METHOD,
    "m_correction": m_correction.METHOD,
    "mentornet": mentornet.METHOD,
    "d2l": d2l.METHOD,
    "abstention": abstention.METHOD,
    "incv": incv.METHOD,
    "reweight": reweight.METHOD,
    "mlnt": mlnt.METHOD,
    "meta_cleaner": meta_cleaner.METHOD,
    "robust_vectors": robust_vectors.METHOD,
    "robust_history": robust_history.METHOD,
    "cross_fitted": cross_fitted.METHOD,
    "selfmix": selfmix.METHOD,
}
DEFAULT_METHOD = "dividemix"


def find_method(name: str) -> Method:
    """The method of that name, or your own, imported from package.module:OBJECT. Raises InputError if it is none."""
    if not isinstance(name, str):
        raise InputError(f"method is {shown(name)}: it must be text")
    if name in METHODS:
        return METHODS[name]
    if not is_foreign(name):
        known = f"the methods are {', '.join(METHODS)}, or your own as package.module:OBJECT"
        raise InputError(f"unknown method {name!r}: {or_meant(name, METHODS, known)}")
    method: Method = import_foreign("method", name)
    members = ("settings", "needs_trusted", "double_backward", "num_nets", "phases", "start", "epoch", "judge")
    if isinstance(method, type):
        raise InputError(f"method {name!r} is a class: name an object of it")
    if missing := [member for member in members if not hasattr(method, member)]:
        raise InputError(f"method {name!r} has no {missing[0]}: inherit from dividemix.methods.method.Method")
    return method
